from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Cause, Finding, Words, consider, evidence
from faultlens.diagnosis.causes.tensorflow import advice
from faultlens.diagnosis.evidence import messages
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.limits import address_space
from faultlens.diagnosis.evidence.tensorflow_code import escaped_exception, threw
from faultlens.inspection.frames import short_function
from faultlens.records.diagnosis import Fix
from faultlens.text.safe import one_line

_MEMORY = ("std::bad_alloc", "std::bad_array_new_length", "std::length_error")
_NOISE = "pybind11::"  # Python's own exceptions on their way through C++: thrown all the time


class OpUncaughtException(Cause):
    """
    ## What it is
    TensorFlow reports errors by status values; exceptions of the C++ library (`std::bad_alloc`, `std::length_error`,
    `std::out_of_range`) are not expected and nobody catches them. They end the process, or reach the Python binding
    on a thread that does not hold the GIL, which kills it as well.

    ## How it looks
    Either SIGABRT with "terminate called after throwing an instance of …"; or SIGSEGV at a small address (0x60) in
    `PyErr_Occurred` below pybind11's `translate_exception`, without any message. In the second case the function that
    threw is gone from the stack.

    ## How to prove it
    `faultlens run` notes every C++ exception when it is thrown: type, text, and the frames it came from.

    ## How to fix it
    The type tells what to look for: `bad_alloc` and `length_error` a size, `out_of_range` an index, `invalid_argument`
    a string that is no number. Check the arguments of the op that threw.
    """

    slug = "op-uncaught-exception"
    code = "FL505"
    headline = "A C++ exception left TensorFlow code that did not expect it"
    words = Words(
        messages.THROWN,
        "a C++ exception was caught by nobody: {said}",
        consider("look at the call that was running", "its type says what for: a size, an index, a text"),
        POSSIBLE,
        unless=messages.THROWN_FOR_WANT,
    )

    def examine(self, case: Case) -> Finding | None:
        escaped = escaped_exception(case) if case.signal == "SIGSEGV" and case.is_null else None
        ended = case.termination if case.signal == "SIGABRT" else None
        if escaped is None and (ended is None or ended.type is None):
            return None
        thrown = case.thrown if case.thrown and not case.thrown.type.startswith(_NOISE) else None
        frame = threw(case)
        if frame is None or case.custom_frame is not None:
            return None
        kind = (thrown.type if thrown else ended.type if ended else None) or "a C++ exception"
        text = (thrown.message if thrown else None) or (ended.what if ended else None)
        said = f": {text}" if text and text != kind else ""
        return Finding(
            strength=_strength(case, kind, said, bool(thrown or ended)),
            title=one_line(f"{kind} thrown in {advice.at_work(case)} was caught by nobody{said}", 160),
            op=case.op,
            evidence=evidence(
                (one_line(f"{kind} was thrown in {short_function(frame.function)}{said}", 240), "C++ exceptions")
                if thrown
                else None,
                (f"terminate called after throwing {ended.type}", "stderr") if ended else None,
                ("it reached Python's binding on a thread without the GIL", "native stack") if escaped else None,
                *case.fault_evidence[:1],
                *advice.known_evidence(case, self.slug),
            ),
            fixes=advice.fixes(case, self.slug, _mend(case, kind)),
            against=_limits(case, kind),
        )


def _strength(case: Case, kind: str, said: str, seen: bool) -> float:
    if kind in _MEMORY or messages.THROWN_FOR_WANT.search(said):
        return LIKELY - 0.1  # what was asked for explains more
    if not seen or case.custom_libraries:
        return POSSIBLE + 0.1
    return STRONG


def _mend(case: Case, kind: str) -> Fix:
    if kind in _MEMORY:
        return consider(
            f"check the sizes that {advice.at_work(case)} is given", "buffer sizes, capacities, lengths, nesting"
        )
    return advice.check_arguments(case)


def _limits(case: Case, kind: str) -> tuple[str, ...]:
    """An ordinary request fails when the address space is used up."""
    budget = address_space(case.crash)
    if kind in _MEMORY and budget is not None and budget.used > budget.limit / 2:
        return (f"the address space is limited to {budget.limit} bytes, and {budget.used} were in use",)
    return ()
