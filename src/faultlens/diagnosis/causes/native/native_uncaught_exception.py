"""Did a C++ exception leave custom native code that nobody caught?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Finding, Words, consider, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import messages, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.crash import CppException, Frame


class NativeUncaughtException(NativeCause):
    """
    ## What it is
    A C++ exception left a custom op, an extension or a ctypes function. TensorFlow and Python do not expect
    exceptions there: an op must report errors through its context.

    ## How it looks
    SIGABRT with `terminate called after throwing an instance of …`; or, for an op that runs eagerly, SIGSEGV in
    `PyErr_Occurred` below pybind11's `translate_exception`, because the exception arrives where the GIL is not
    held. A Python `except` cannot catch it.

    ## How to prove it
    faultlens notes exceptions as they are thrown: type, text and the function that threw.

    ## How to fix it
    Catch it inside: `try { … } catch (const std::exception& e) { ctx->SetStatus(errors::Internal(e.what())); }`, or
    avoid what throws (`at()`, `stoi`, `new` with a size from the data). Functions called through ctypes must be
    `noexcept`.
    """

    slug = "native-uncaught-exception"
    code = "FL607"
    headline = "a C++ exception left custom native code"
    words = Words(
        messages.THROWN,
        "a C++ exception left native code and nobody caught it: {said}",
        consider("catch exceptions inside the native code and report them as an error"),
        unless=messages.THROWN_FOR_WANT,
        mentioned=Wording.LOADS_NATIVE,
    )

    def examine(self, case: Case) -> Finding | None:
        ended = self._ended_by_exception(case)
        if ended is None:
            return None
        thrown = case.thrown
        thrower = native_code.suspect_in(thrown.frames) if thrown else None
        frame = thrower or (native_code.suspect(case) if case.signal == "SIGABRT" else None)
        how = "ctx->SetStatus(…)" if native_code.is_op(case) else native_code.reports_errors(case)
        fix = safe("catch exceptions inside the native code and report them as an error", how)
        if frame is None:
            if thrown is not None or not native_code.op_of(case) or case.op is None:
                return None
            by_custom_op = case.op.lower() in (native_code.op_of(case) or "").lower().split(" or ")
            what = "a C++ exception left native code"
            return self.blame_earlier(case, LIKELY, what, ended, fix=fix) if by_custom_op else None
        # An absurd size in code that several threads are in: more likely they spoiled it than that it was asked for.
        raced = thrown is not None and thrown.type in native_code.SIZE_ERRORS and native_code.others_inside(case, frame)
        return self.blame(
            case,
            frame,
            LIKELY if raced else PROVEN if thrower else STRONG,
            f"threw {_what(case, thrown)} that nobody caught",
            ended,
            _seen(thrown, thrower),
            fix=fix,
        )

    def _ended_by_exception(self, case: Case) -> tuple[str, str] | None:
        """The fact that shows that an exception, not something else, ended it."""
        if case.signal == "SIGABRT" and case.termination and case.termination.type:
            text = f": {case.termination.what}" if case.termination.what else ""
            return f"the C++ runtime gave up on {case.termination.type}{text}", "stderr"
        if case.signal == "SIGABRT" and case.thrown and _gave_up(case):
            return "the C++ runtime found nobody to catch it", "native stack"
        if case.signal == "SIGSEGV" and case.is_null and case.calls(r"translate_exception"):
            return "pybind11 was turning a C++ exception into a Python one, without holding the GIL", "native stack"
        return None


def _gave_up(case: Case) -> bool:
    """The abort came from the C++ runtime. Its functions often have no names."""
    thread = case.crash.crashed_thread
    return any("libstdc++" in (frame.library or "") for frame in (thread.frames if thread else ())[:8])


def _what(case: Case, thrown: CppException | None) -> str:
    if thrown is None:
        return f"a {case.termination.type}" if case.termination and case.termination.type else "a C++ exception"
    return f"{thrown.type} ({thrown.message})" if thrown.message else thrown.type


def _seen(thrown: CppException | None, thrower: Frame | None) -> tuple[str, str] | None:
    if thrown is None or thrower is None:
        return None
    return (
        f"{thrown.type} was thrown by {native_code.place(thrower)}, {thrown.seconds_before:.1f} s before",
        "C++ runtime",
    )
