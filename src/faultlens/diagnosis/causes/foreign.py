"""A cause that another distribution adds: where it fails, the verdict is made without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from faultlens.diagnosis.causes.base import Cause, Finding
from faultlens.diagnosis.evidence.case import Case
from faultlens.plugins import complain, name_of

T = TypeVar("T")


class ForeignCause(Cause):
    def __init__(self, cause: Cause) -> None:
        self._cause = cause
        self._failed = False
        self.slug, self.code, self.headline = cause.slug, cause.code, cause.headline  # type: ignore[misc]

    @property
    def family(self) -> str:
        """The package that it comes from."""
        return type(self._cause).__module__.partition(".")[0]

    @property
    def explanation(self) -> str:
        return self._cause.explanation

    def examine(self, case: Case) -> Finding | None:
        return self._asked(self._cause.examine, case, Finding)

    def rule_out(self, case: Case) -> str | None:
        return self._asked(self._cause.rule_out, case, str)

    def _asked(self, question: Callable[[Case], T | None], case: Case, expected: type[T]) -> T | None:
        """What fails once is not asked again."""
        if self._failed:
            return None
        try:
            answer = question(case)
            if answer is None or isinstance(answer, expected):
                return answer
            raise TypeError(f"{expected.__name__} or None expected, not {type(answer).__name__}")
        except Exception as error:
            self._failed = True
            complain(name_of(self._cause), error)
            return None
