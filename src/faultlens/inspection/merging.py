"""One stack out of two: Python's own frames put in the place of the interpreter's native ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from faultlens.records.crash import Frame

# Where the interpreter hands calls on, and how it was started: says nothing about the program.
_NOISE_PREFIXES = ("PyEval", "_PyEval", "_Py", "_TAIL_CALL_", "PyObject_Call", "PyRun_", "pymain_", "pyrun_")
_NOISE = frozenset(
    {
        *(
            "call_function",
            "function_code_fastcall",
            "classmethoddescr_call",
            "cmpwrapper_call",
            "do_call_core",
            "fast_function",
        ),
        *("function_call", "instance_call", "instancemethod_call", "methoddescr_call", "proxy_call"),
        *("slot_tp_call", "type_call", "weakref_call", "wrap_call", "wrapper_call", "wrapperdescr_call"),
        *("Py_BytesMain", "Py_RunMain", "Py_Main", "run_mod", "run_eval_code_obj", "main"),
        *("pythread_wrapper", "thread_run", "Py_TYPE"),
    }
)
_START = frozenset(
    {"_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone", "clone3", "__clone3"}
)


class PythonFrame(NamedTuple):
    frame: Frame
    is_entry: bool  # the first Python frame above a call of the interpreter's loop
    is_shim: bool = False  # made by the interpreter, has no code of the program


def merge(python: Sequence[PythonFrame], native: Sequence[Frame]) -> list[Frame]:
    """Both innermost first, as is the result.

    Each call of the interpreter's loop on the native stack runs one group of Python frames. Groups and calls
    are paired from the innermost on, because a damaged stack loses its outer end.
    """
    groups = deque(_groups(python))
    if not groups:
        return list(native)
    merged: list[Frame] = []
    interrupted = True  # nothing but the interpreter so far: the fault happened in it
    for index, frame in enumerate(native):
        if is_eval(frame):
            if index == 0:
                merged.append(frame)
            if groups:
                merged += groups.popleft()
            interrupted = False
        elif not _is_noise(frame) or (interrupted and is_interpreter(frame)):
            merged.append(frame)
            interrupted = interrupted and is_interpreter(frame)
    return merged + [frame for group in groups for frame in group]


def is_eval(frame: Frame) -> bool:
    return "_PyEval_EvalFrameDefault" in frame.function or frame.function.startswith("_TAIL_CALL_")


def is_interpreter(frame: Frame) -> bool:
    return PurePath(frame.library or "").name.startswith(("libpython", "python"))


def _groups(python: Iterable[PythonFrame]) -> list[list[Frame]]:
    """Frames that one call of the interpreter's loop runs: the outermost of them is the entry."""
    groups: list[list[Frame]] = [[]]
    for frame, is_entry, is_shim in python:
        if not is_shim:
            groups[-1].append(frame)
        if is_entry:
            groups.append([])
    return [group for group in groups if group]


def _is_noise(frame: Frame) -> bool:
    if frame.function in _START:
        return True
    if not is_interpreter(frame):
        return False
    name = frame.function
    if name.startswith(("_Py_Finalize", "_PyAtExit")):
        return False
    return name in _NOISE or name.startswith(_NOISE_PREFIXES) or "vectorcall" in name.lower()
