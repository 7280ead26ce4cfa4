"""Leaves marks of how far the program has come, in memory that outlives it."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from . import layout

LOOPS = ("train", "evaluate", "predict")
LONG_TRACE_NS = 200_000_000  # shorter ones are not worth a mark of their own

_DATA = layout.PHASES.index("data")
_get_thread = threading.get_ident
_now = time.time_ns


class _Phase:
    __slots__ = ("began", "detail", "name", "owner", "step", "steps")

    def __init__(self, name: str, detail: str = "", steps: int = 0) -> None:
        self.name = name
        self.detail = detail
        self.step = 0
        self.steps = steps
        self.began = _now()
        self.owner: Any = None  # a weak reference: when its object is gone, so is the phase


class Progress:
    """Phases nest: an evaluation within training, a save within either. Those of one thread are followed at a time."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._open: list[_Phase] = []
        self._thread = 0
        self._epoch = self._epochs = 0
        self._made = 0  # steps, of whatever loop
        self._trained = self._called = 0  # how many had been made when the program last did so itself
        self._marks = 0
        os.register_at_fork(after_in_child=self._start_again)

    # ------------------------------------------------------------------------------------ what happens

    def begin(self, name: str, detail: str = "", steps: int = 0, mark: bool = True, owner: Any = None) -> None:
        if self._open and self._thread != _get_thread():
            return
        self._thread = _get_thread()
        phase = _Phase(name, detail, steps)
        if owner is not None:
            phase.owner = weakref.ref(owner, partial(self._abandoned, phase))
        self._open.append(phase)
        if mark:
            self._mark(name, detail)
        self._write()

    def end(self, name: str, mark: str = "") -> None:
        """The innermost phase of this name is over, and what was begun in it and never ended."""
        phase = next((each for each in reversed(self._open) if each.name == name), None)
        if phase is None or self._thread != _get_thread():
            return
        if mark:
            self._mark(mark, phase.detail if mark == "saved" else phase.name)
        elif name == "trace" and _now() - phase.began > LONG_TRACE_NS:
            self._mark("trace", phase.detail, phase.began)
        self._end(phase)

    @property
    def made(self) -> int:
        """Steps of all loops."""
        return self._made

    def inside(self, name: str) -> bool:
        return any(phase.name == name for phase in self._open)

    def epoch(self, number: int, of: int) -> None:
        if self._return_to("train"):
            self._epoch, self._epochs = number, of
            self._open[-1].step = 0
            self._mark("epoch", f"epoch {number}")
            self._write()

    def step(self, name: str, number: int) -> None:
        """Called for every step: nearly nothing happens."""
        if self._open and self._thread == _get_thread():
            if self._open[-1].name != name and not self._return_to(name):
                return
            phase = self._open[-1]
            self._made += max(number - phase.step, 1)  # several in one, where Keras executes them so
            phase.step = number
            layout.STEP.pack_into(self._page, layout.STEP_AT, number, _now(), self._made)

    def taking(self, number: int) -> None:
        """The program itself takes an element of a dataset; that is all that is known of its loop."""
        if not self._open:
            self._made += 1
            layout.STATE.pack_into(self._page, layout.STATE_AT, _DATA, 0, 0, 0, number, _now(), self._made)

    def taken(self) -> None:
        if not self._open:
            layout.PHASE.pack_into(self._page, layout.STATE_AT, 0)

    def trained(self) -> None:
        """The program itself trains on a batch. If it took that from a dataset, the step has been counted."""
        if not self._open:
            if self._made == self._trained:
                self._count()
            self._trained = self._made

    def called(self) -> None:
        """The program itself calls a tf.function: a step for as long as nothing better counts them."""
        if not self._open and self._made == self._called:
            self._count()
            self._called = self._made

    def _count(self) -> None:
        self._made += 1
        layout.STEP.pack_into(self._page, layout.STEP_AT, 0, _now(), self._made)

    # --------------------------------------------------------------------------------------- the page

    def _abandoned(self, phase: _Phase, _: Any, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Its loop was left by an exception, which the program has survived."""
        if not is_finalizing():
            self._end(phase)

    def _return_to(self, name: str) -> bool:
        """Make this phase the innermost: those begun in it were left by an exception."""
        if self._thread != _get_thread():
            return False
        while self._open and self.inside(name) and self._open[-1].name != name:
            self._end(self._open[-1])
        return bool(self._open) and self._open[-1].name == name

    def _end(self, phase: _Phase) -> None:
        if phase in self._open:
            del self._open[self._open.index(phase) :]
            if not self.inside("train"):
                self._epoch = self._epochs = 0
            self._write()

    def _write(self) -> None:
        innermost = self._open[-1] if self._open else None
        loop = next((each for each in reversed(self._open) if each.name in LOOPS), None)
        layout.STATE.pack_into(
            self._page,
            layout.STATE_AT,
            layout.PHASES.index(innermost.name) if innermost else 0,
            self._epoch,
            self._epochs,
            loop.steps if loop else 0,
            loop.step if loop else 0,
            _now(),
            self._made,
        )
        text = _fitting(innermost.detail if innermost else "", layout.DETAIL_BYTES)
        layout.DETAIL.pack_into(self._page, layout.DETAIL_AT, len(text), text)

    def _mark(self, kind: str, text: str = "", when: int = 0) -> None:
        data = _fitting(text, 116)
        place = layout.MARKS_AT + self._marks % layout.MARKS * layout.MARK.size
        layout.MARK.pack_into(self._page, place, when or _now(), layout.KINDS.index(kind), len(data), data)
        self._marks += 1
        layout.COUNT.pack_into(self._page, layout.COUNT_AT, self._marks)

    def _start_again(self) -> None:
        """In a forked child, whose page is empty."""
        self._open = []
        self._epoch = self._epochs = self._marks = self._made = self._trained = self._called = 0


def _fitting(text: str, size: int) -> bytes:
    """Of a long path the end is what tells."""
    data = text.encode("utf-8", "backslashreplace")
    return data if len(data) <= size else b"..." + data[len(data) - size + 3 :]
