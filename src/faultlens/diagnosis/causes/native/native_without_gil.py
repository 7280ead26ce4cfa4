"""Was Python's C API used by a thread that did not hold the GIL?"""

from __future__ import annotations

import re
from itertools import pairwise

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Finding, Words, consider, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import foreign_calls, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Frame

_PYTHON_NOTICED = re.compile(
    r"Fatal Python error: [^\n]*(?:\bGIL\b|thread state|tstate|PyGILState|PyEval_(?:Save|Restore|Acquire|Release)Thread"
    r"|wrong thread)[^\n]*"
)


class NativeWithoutGil(NativeCause):
    """
    ## What it is
    Native code used Python's C API on a thread that did not hold the GIL: between `Py_BEGIN_ALLOW_THREADS` and
    `Py_END_ALLOW_THREADS`, on a thread of its own, in a TensorFlow kernel, or through `ctypes.CDLL`, which releases
    the GIL around each call.

    ## How it looks
    SIGSEGV at a small address inside libpython (the current thread state is null), right below a function of the
    library; or `Fatal Python error: … the function must be called with the GIL held`.

    ## How to prove it
    The crashed thread did not hold the GIL, and a function of libpython is innermost.

    ## How to fix it
    Take the GIL around the calls (`PyGILState_Ensure`/`PyGILState_Release`, `py::gil_scoped_acquire`). For ctypes,
    open a library that uses Python's API with `ctypes.PyDLL`.
    """

    slug = "native-without-gil"
    code = "FL614"
    headline = "Python's C API was used without holding the GIL"
    words = Words(
        _PYTHON_NOTICED,
        "Python's API was used without the GIL: {said}",
        consider("take the GIL around calls of Python's API", "PyGILState_Ensure, py::gil_scoped_acquire"),
        unless=re.compile(r"Py_FinalizeEx|interpreter shutdown"),
    )

    def examine(self, case: Case) -> Finding | None:
        thread = case.crash.crashed_thread
        said = case.said(_PYTHON_NOTICED) if case.signal == "SIGABRT" else None
        caller = self._caller(case)
        if thread is None or (caller is None and not said) or case.calls("translate_exception|Py_FinalizeEx"):
            return None
        by_ctypes = caller is not None and owner_of(caller) == "python"
        fix = (
            safe("call Python's API with the GIL", "ctypes.pythonapi, or ctypes.PyDLL instead of ctypes.CDLL")
            if by_ctypes
            else safe("take the GIL around calls of Python's API", "PyGILState_Ensure, py::gil_scoped_acquire")
        )
        noticed = (f"Python noticed: {said}", "stderr") if said else None
        if caller is None:
            if not case.custom_libraries:
                return None
            return self.blame_earlier(case, LIKELY, "Python's API was used without the GIL", noticed, fix=fix)
        if not said and (thread.holds_gil or case.signal not in ("SIGSEGV", "SIGBUS")):
            return None
        return self.blame(
            case,
            caller,
            STRONG if said or case.is_null else POSSIBLE,
            "was called through ctypes without the GIL" if by_ctypes else "used Python's API without holding the GIL",
            ("the thread did not hold the GIL", "Python's thread state") if not thread.holds_gil else None,
            ("the current thread state is null: that is what Python read", "siginfo") if case.is_null else None,
            noticed,
            fix=fix,
        )

    def _caller(self, case: Case) -> Frame | None:
        """The native code right below libpython; ctypes itself where it called the API directly."""
        if not case.native_stack or owner_of(case.native_stack[0]) != "python":
            return native_code.suspect(case) if case.signal == "SIGABRT" else None
        if own := _calls_python(case):
            return own
        outside = (frame for frame in case.native_stack if owner_of(frame) != "python")
        below = next(outside, None)
        if below is None:
            return None
        if owner_of(below) == "system":  # libffi: called from Python by ctypes
            return foreign_calls.called(case)
        return below if owner_of(below) in ("custom", "package") else None


def _calls_python(case: Case) -> Frame | None:
    """Code of the user's own that called into Python on a thread of its own: whatever runs there needs the GIL."""
    for inner, frame in pairwise(case.stack):
        if frame.kind == "native" and owner_of(frame) == "custom" and owner_of(inner) == "python":
            outside = case.stack[case.stack.index(frame) :]
            return frame if all(each.kind == "native" and owner_of(each) != "python" for each in outside) else None
    return None
