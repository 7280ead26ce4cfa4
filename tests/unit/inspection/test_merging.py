"""Python frames in the place of the interpreter's native ones."""

from __future__ import annotations

from faultlens.inspection.merging import PythonFrame, merge
from faultlens.records.crash import Frame

LIBPYTHON = "/usr/lib/libpython3.11.so.1.0"
EVAL = "_PyEval_EvalFrameDefault"


def native(function: str, library: str = "/usr/lib/libdemo.so") -> Frame:
    return Frame(kind="native", function=function, library=library)


def interpreter(*functions: str) -> list[Frame]:
    return [native(function, LIBPYTHON) for function in functions]


def python(function: str, entry: bool = False, shim: bool = False) -> PythonFrame:
    return PythonFrame(Frame(kind="python", function=function, file="train.py", line=1), entry, shim)


def names(frames: list[Frame]) -> list[str]:
    return [frame.function for frame in frames]


def test_each_call_of_the_interpreter_becomes_its_python_frames() -> None:
    stack = [native("memcpy"), *interpreter("cfunction_call", "_PyObject_MakeTpCall", EVAL, "_PyEval_Vector")]
    stack += [native("sort_callback"), *interpreter(EVAL, "Py_RunMain"), native("__libc_start_main")]
    frames = [python("copy"), python("key", entry=True), python("fit"), python("<module>", entry=True)]
    assert names(merge(frames, stack)) == [
        *("memcpy", "cfunction_call", "copy", "key", "sort_callback", "fit", "<module>"),
    ]


def test_a_crash_inside_the_interpreter_keeps_its_frames() -> None:
    stack = [*interpreter("_Py_Dealloc", "list_dealloc", "_PyFrame_Clear", EVAL, "_PyEval_Vector")]
    assert names(merge([python("f", entry=True)], stack)) == ["_Py_Dealloc", "list_dealloc", "_PyFrame_Clear", "f"]


def test_a_crash_in_the_interpreters_loop_keeps_the_loop() -> None:
    assert names(merge([python("f", entry=True)], interpreter(EVAL))) == [EVAL, "f"]


def test_python_frames_beyond_the_end_of_a_damaged_stack_are_kept() -> None:
    stack = [native("smashed"), *interpreter(EVAL)]
    frames = [python("inner", entry=True), python("outer", entry=True), python("<module>", entry=True)]
    assert names(merge(frames, stack)) == ["smashed", "inner", "outer", "<module>"]


def test_without_names_for_the_interpreter_native_comes_before_python() -> None:
    stack = [native("crash_here"), native("??", LIBPYTHON)]
    assert names(merge([python("f", entry=True)], stack)) == ["crash_here", "??", "f"]


def test_frames_the_interpreter_made_up_are_left_out() -> None:
    frames = [python("f"), python("<shim>", entry=True, shim=True), python("g"), python("<shim>", True, True)]
    stack = [native("x"), *interpreter(EVAL), native("y"), *interpreter(EVAL)]
    assert names(merge(frames, stack)) == ["x", "f", "y", "g"]


def test_a_thread_without_python_is_left_alone() -> None:
    stack = [native("WorkerLoop"), native("start_thread"), native("__clone3")]
    assert merge([], stack) == stack


def test_the_way_out_is_not_noise() -> None:
    stack = [native("free"), *interpreter("_PyAtExit_Call", "Py_FinalizeEx", EVAL)]
    assert "Py_FinalizeEx" in names(merge([python("f", entry=True)], stack))
