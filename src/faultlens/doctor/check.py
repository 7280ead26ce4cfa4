"""What a check is: a name, what it looks at, and a look at the environment that ends in an Examination."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from faultlens.records.diagnosis import Evidence, Fix
from faultlens.records.finding import Examination, Finding, Repair
from faultlens.records.severity import rank
from faultlens.rules import Rule
from faultlens.target_env.target import TargetEnvironment

LAST = 1000  # on the screen


class Check(Rule, ABC):
    """One check. The docstring of a subclass says what it looks at, why, and what was measured."""

    needed = ("slug", "headline")
    code = ""  # checks are known by their names

    name: ClassVar[str]  # "numpy-abi": how it is asked for; its slug
    looks_at: ClassVar[str]  # one line for --list; its headline
    position: ClassVar[int] = LAST  # where it stands on the screen
    causes: ClassVar[tuple[str, ...]] = ()  # slugs of the crashes it foresees; `faultlens run` asks it about those

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            cls.slug = cls.name
        if "looks_at" in vars(cls):
            cls.headline = cls.looks_at

    @abstractmethod
    def examine(self, target: TargetEnvironment) -> Examination:
        """Looks, and judges. What cannot be seen is `skipped` with the reason, never guessed."""

    # ------------------------------------------------------------------------------- for subclasses

    def fine(self, summary: str, details: Iterable[str] = ()) -> Examination:
        return Examination(check=self.name, mark="ok", summary=summary, details=tuple(details))

    def skipped(self, because: str) -> Examination:
        return Examination(check=self.name, mark="skipped", summary=because)

    def found(self, findings: Iterable[Finding], details: Iterable[str] = ()) -> Examination:
        """At least one finding; the gravest comes first and is the summary."""
        ranked = sorted(findings, key=lambda finding: rank(finding.severity))
        others = f" (and {len(ranked) - 1} more)" if len(ranked) > 1 else ""
        return Examination(
            check=self.name,
            mark=ranked[0].severity,
            summary=ranked[0].title + others,
            details=tuple(details),
            findings=tuple(ranked),
        )

    def judged(self, findings: Iterable[Finding], summary: str, details: Iterable[str] = ()) -> Examination:
        """`found` where there is something, else `fine` with the summary."""
        found = tuple(findings)
        return self.found(found, details) if found else self.fine(summary, details)

    def error(
        self, title: str, evidence: Iterable[tuple[str, str]], fixes: Iterable[Fix], *,
        causes: tuple[str, ...] | None = None, repair: Repair | None = None,
    ) -> Finding:  # fmt: skip
        """It will fail or crash: a fact proves it."""
        return Finding(
            check=self.name,
            severity="error",
            title=title,
            evidence=tuple(Evidence(fact=fact, source=source) for fact, source in evidence),
            fixes=tuple(fixes),
            causes=self.causes if causes is None else causes,
            repair=repair,
        )

    def warning(
        self, title: str, evidence: Iterable[tuple[str, str]], fixes: Iterable[Fix], *,
        causes: tuple[str, ...] | None = None, repair: Repair | None = None,
    ) -> Finding:  # fmt: skip
        """It will fail under conditions that the title names."""
        return replace(self.error(title, evidence, fixes, causes=causes, repair=repair), severity="warning")


def fix(title: str, command: str = "", detail: str = "", *, safe: bool = True) -> Fix:
    return Fix(title=title, command=command, detail=detail, grade="safe" if safe else "needs thought")
