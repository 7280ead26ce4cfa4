"""What a user would name where no rule names an op: what raised the exception, or the call on the user's line."""

from __future__ import annotations

from faultlens.diagnosis.evidence import call_arguments
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.tracebacks import PythonException
from faultlens.inspection.frames import is_own
from faultlens.records.diagnosis import Location


def named_by_user(case: Case, line: Location | None) -> str | None:
    """`line`: the one that the verdict points at, where it is not the one that was running."""
    if case.exception is not None and not case.is_native_crash:
        return _of_exception(case, case.exception, line or case.location)
    return case.called_on(line) if line else case.called


def _of_exception(case: Case, exception: PythonException, line: Location | None) -> str | None:
    """The user's function in a pipeline, the op, what reads the files, or the call on the line."""
    if any("/python/ops/script_ops.py" in (frame.file or "") for frame in exception.frames):
        return "py_function"
    read = call_arguments.reader(case.crash.sources) if case.op in (None, "IteratorGetNext") else None
    return read or case.op or _called_in(exception) or (case.called_on(line) if line else None)


def _called_in(exception: PythonException) -> str | None:
    """The function of a library that the user's line called, by the traceback."""
    own = next((index for index, frame in enumerate(exception.frames) if is_own(frame)), 0)
    function = exception.frames[own - 1].function if own else "_"
    return None if function.startswith(("_", "<")) or function in ("error_handler", "wrapper") else function
