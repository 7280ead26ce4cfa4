"""Saves that may fail without harm: every problem is told once, the program goes on, and one save is made at a time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from faultlens.saving import PendingSave

Done = Callable[[bool], None]


class Attempts:
    """Attempts of one writer. `done` hears of each whether it succeeded, in the background as soon as it is known."""

    def __init__(self) -> None:
        self._pending: PendingSave | None = None
        self._done: Done = lambda _: None
        self._told: set[str] = set()

    def make(self, save: Callable[[], Any], done: Done) -> None:
        """`save` returns what `faultlens.save` returns."""
        self.settle(wait=True)
        result = self._tried(save)
        if isinstance(result, PendingSave):
            self._pending, self._done = result, done
        else:
            self._conclude(result, done)

    def settle(self, wait: bool = False) -> None:
        """See how the save in the background has ended."""
        pending = self._pending
        if pending is None or not (wait or pending.done):
            return
        self._pending = None
        self._conclude(self._tried(pending.wait), self._done)

    def tell(self, text: str, category: type[Warning] = RuntimeWarning) -> None:
        """Sizes and file names of numbered saves differ each time: the problem is the same."""
        key = re.sub(r"\S*[\d/]\S*( (bytes?|[kKMGT]i?B)\b)?", "", text)
        if key not in self._told:
            self._told.add(key)
            warnings.warn(text, category, stacklevel=3)

    def _tried(self, action: Callable[[], Any]) -> Any:
        """What it returns, or the exception that it raises."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            try:
                result = action()
            except Exception as error:  # whatever it is, it must not end the training
                result = error
        for each in said:
            self.tell(str(each.message), each.category)
        return result

    def _conclude(self, result: Any, done: Done) -> None:
        failed = isinstance(result, Exception)
        if failed:
            self.tell(f"{result} The training goes on, and earlier saves stay.")
        done(not failed)
