"""What "dies the same way" means: the signal, the innermost native function, and the check that failed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath
from typing import NamedTuple

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.checks import failed_check
from faultlens.diagnosis.evidence.messages import DOUBLE_FREE, HEAP_OVERFLOW, INVALID_FREE
from faultlens.diagnosis.evidence.ops import kernel_op, op_at_fault
from faultlens.inspection.frames import is_nameless, short_function
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Crash, Frame
from faultlens.text.safe import one_line

# A C++ exception that left its op while the GIL was not held ends here, whatever threw it.
_LOST_EXCEPTION = "PyErr_Occurred"
# Where a damaged heap is noticed is a matter of chance: what glibc says of it counts, not the function.
_HEAP_DAMAGE = {"heap overflow": HEAP_OVERFLOW, "double free": DOUBLE_FREE, "invalid free": INVALID_FREE}
_SAY_WHY = ("absl::raw_log_internal::",)  # called by what fails
_LAMBDA = re.compile(r", ([A-Za-z_][\w:]{3,300}(?:<[^()]*>)?[\w:]*)\(.*\)(?: const)?::(?:\{lambda|\$_\d)")
_REPEATS = 3  # a function that stands on an overflowed stack so often takes part in the recursion


class Signature(NamedTuple):
    signal: str | None = None
    function: str | None = None  # the innermost native one outside of the C and C++ runtimes
    place: tuple[str, int] | None = None  # of the innermost frame, named or not: its library, and where in it
    check: str | None = None  # "tensor.cc:1120", the check that failed
    heap: str | None = None  # the damage that glibc noticed
    thrown: str | None = None  # type of the C++ exception that nobody caught
    exception: str | None = None  # type of the Python exception that ended the program, where no signal did
    op: str | None = None  # TensorFlow's op that raised it, or whose kernel is on the crashed stack
    recursion: frozenset[str] = frozenset()  # functions that repeat on a stack that overflowed

    def __str__(self) -> str:
        if self.exception:
            return f"{self.exception} of {self.op}" if self.op else self.exception
        parts = [one_line(self.signal or "no signal", 40)]
        if self.heap:
            parts.append(f"at a damaged heap ({self.heap})")
        elif self.function:
            parts.append(f"in {one_line(_readable(self.function), 160)}")
        if self.check:
            parts.append(f"({one_line(self.check, 80)})")
        if self.thrown:
            parts.append(f"after {one_line(self.thrown, 80)} was thrown")
        return " ".join(parts)


def signature_of(crash: Crash) -> Signature:
    case = Case(crash)
    if case.signal is None:
        raised = case.exception if crash.outcome.kind == "exception" else None
        return Signature(exception=raised.type.rpartition(".")[2], op=op_at_fault(crash)) if raised else Signature()
    telling = _telling(case)
    frame = _culprit(telling)
    function = _function(frame) if frame else None
    check = failed_check(case) if case.signal == "SIGABRT" else None
    return Signature(
        signal=case.signal,
        function=function,
        place=_place(telling[0]) if telling else None,
        check=check.place.rpartition("/")[2] if check and ":" in check.place else None,
        heap=next((damage for damage, words in _HEAP_DAMAGE.items() if case.said(words)), None),
        thrown=_thrown(case, function),
        op=kernel_op(case.stack),
        recursion=_recursion(case.stack) if case.hits_stack_end else frozenset(),
    )


def same_death(wanted: Signature, seen: Signature) -> bool:
    if wanted.exception or seen.exception:
        return (wanted.exception, wanted.op) == (seen.exception, seen.op)
    if wanted.signal is None or wanted.signal != seen.signal:
        return False
    for known, found in ((wanted.check, seen.check), (wanted.thrown, seen.thrown)):
        if known and known != found:
            return False
    if wanted.heap or seen.heap:
        return wanted.heap == seen.heap
    if wanted.function is None or wanted.function == seen.function:
        return True
    # The same code under another name: inlined, or known to one of two symbol tables. Or of the same recursion.
    same_place = wanted.place is not None and wanted.place == seen.place
    return same_place or wanted.function in seen.recursion or seen.function in wanted.recursion


def still_the_same(first: Signature, now: Signature) -> bool:
    """While a program shrinks it must not slip over to another op that dies at the same check."""
    return same_death(first, now) and (now.op is None or now.op == first.op)


def _telling(case: Case) -> list[Frame]:
    """The native frames outside of the C and C++ runtimes, innermost first."""
    frames = [frame for frame in case.native_stack if owner_of(frame) != "system"]
    return [frame for frame in frames if not short_function(frame.function).startswith(_SAY_WHY)]


def _culprit(frames: list[Frame]) -> Frame | None:
    named = (frame for frame in frames if not (is_nameless(frame) or frame.approximate))
    return next((frame for frame in named if owner_of(frame) != "unknown"), None)


def _function(frame: Frame) -> str:
    """Without parameters and template arguments, but for the standard library's, whose names mean nothing else."""
    short = short_function(frame.function)
    return frame.function if short.startswith("std::") else short


def _readable(function: str) -> str:
    """ "std::_Function_handler<…, tensorflow::FastParse(…)::{lambda(int)#1}>::_M_invoke" is a lambda of FastParse."""
    if match := _LAMBDA.search(function[:4000]):
        return f"a lambda of {short_function(match[1])}"
    return short_function(function)


def _place(frame: Frame) -> tuple[str, int] | None:
    return (PurePath(frame.library).name, frame.offset) if frame.library and frame.offset is not None else None


def _thrown(case: Case, function: str | None) -> str | None:
    if case.termination and case.termination.type:
        return case.termination.type
    return case.thrown.type if case.thrown and function == _LOST_EXCEPTION else None


def _recursion(frames: tuple[Frame, ...]) -> frozenset[str]:
    names = Counter(short_function(frame.function) for frame in frames if not is_nameless(frame))
    return frozenset(name for name, count in names.items() if count >= _REPEATS)
