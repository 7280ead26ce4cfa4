"""Ending a training in order when SIGTERM arrives: the signal waits until the training is where it can be saved."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from types import FrameType
from typing import Any


class Termination:
    """From `begin` to `end` SIGTERM only sets `asked`. `hand_over` gives it to whom it would have met without us.

    demanded: by the user, who is told where it cannot be."""

    def __init__(self, demanded: bool = True) -> None:
        self._demanded = demanded
        self.asked = False
        self.over = False  # it was handed over, and the program lives on
        self._former: Any = None
        self._pid = 0
        self._caller: tuple[int, Any] | None = None

    def begin(self) -> None:
        self.end()
        self.asked = self.over = False
        try:
            former = signal.signal(signal.SIGTERM, self._note)
        except ValueError:
            if self._demanded:
                warnings.warn(
                    "SIGTERM will not be waited for: only the main thread can, and the training runs in another",
                    RuntimeWarning,
                    stacklevel=3,
                )
            return
        self._former = signal.SIG_DFL if former is None else former  # None: not Python's, so Python cannot put it back
        self._pid, self._caller = os.getpid(), _caller()

    def end(self) -> None:
        if self._caller is not None:
            self._caller = None
            signal.signal(signal.SIGTERM, self._former)

    def hand_over(self) -> None:
        self.end()
        self.asked, self.over = False, True
        signal.raise_signal(signal.SIGTERM)

    def _note(self, _number: int, frame: FrameType | None) -> None:
        """A training that was ended by an exception told nobody; neither does it run in forked workers."""
        if self._pid == os.getpid() and self._is_running(frame):
            self.asked = True
        else:
            self.hand_over()

    def _is_running(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if (id(frame), frame.f_code) == self._caller:
                return True
            frame = frame.f_back
        return False


def _caller() -> tuple[int, Any] | None:
    """Who began the training: `fit`, or a loop of the user's own, below the callbacks that it calls. Not the frame
    itself, which would keep all its data alive."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name == "on_train_begin":
        frame = frame.f_back
    return None if frame is None else (id(frame), frame.f_code)
