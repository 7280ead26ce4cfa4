"""Saves that may fail without harm: every problem is told once, the program goes on, and one save is made at a time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from faultlens.saving import PendingSave, save

Done = Callable[[bool], None]


class Attempts:
    """Attempts of one writer. `done` hears of each whether it succeeded, in the background as soon as it is known."""

    def __init__(self, **options: Any) -> None:
        self._options = options  # of `faultlens.save`
        self._pending: PendingSave | None = None
        self._done: Done = lambda _: None
        self._told: set[str] = set()

    def save(self, subject: Any, path: str, done: Done, **options: Any) -> None:
        self.settle(wait=True)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            try:
                result: Any = save(subject, path, **{**self._options, **options})
            except Exception as error:  # whatever it is, it must not end the training
                result = error
        for each in said:
            self.tell(str(each.message), each.category)
        if isinstance(result, PendingSave):
            self._pending, self._done = result, done
        else:
            self._conclude(result if isinstance(result, Exception) else None, done)

    def settle(self, wait: bool = False) -> None:
        """See how the save in the background has ended."""
        pending = self._pending
        if pending is None or not (wait or pending.done):
            return
        self._pending = None
        error = None
        try:
            pending.wait()
        except Exception as failure:
            error = failure
        self._conclude(error, self._done)

    def tell(self, text: str, category: type[Warning] = RuntimeWarning) -> None:
        """Sizes and file names of numbered saves differ each time: the problem is the same."""
        key = re.sub(r"\S*[\d/]\S*", "", text)
        if key not in self._told:
            self._told.add(key)
            warnings.warn(text, category, stacklevel=3)

    def _conclude(self, error: Exception | None, done: Done) -> None:
        if error is not None:
            self.tell(f"{error} The training goes on, and earlier saves stay.")
        done(error is None)
