"""Keeps our own failures away from the program."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .own_code import is_own


class Guard:
    """After the first failure nothing more is recorded."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.working = True
        self._report = report

    def failed(self, error: Exception) -> None:
        """To be called where an exception was caught. One that is not ours is raised again: a signal handler of the
        program may run, and raise, in the middle of our code."""
        if _from_signal_handler(error):
            raise error
        if self.working:
            self.working = False
            with contextlib.suppress(Exception):
                self._report(f"{type(error).__name__}: {error}")

    def __call__(self, function: Callable[..., Any]) -> Callable[..., None]:
        """The function, called only while all is well, and never failing."""

        def call(*arguments: Any, **keywords: Any) -> None:
            if self.working:
                try:
                    function(*arguments, **keywords)
                except Exception as error:
                    self.failed(error)

        return call


def _from_signal_handler(error: Exception) -> bool:
    """Whether the exception comes from the user's own code, which none of ours calls."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and is_own(traceback.tb_frame.f_code.co_filename)
