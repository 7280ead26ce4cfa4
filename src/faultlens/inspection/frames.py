"""Which frames are the user's own, and which one to point at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from faultlens.records.crash import Crash, Frame, Thread

_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/(?P<package>[^/]+)")
_STANDARD_LIBRARY = re.compile(r"(?:^|/)(?:lib(?:32|64)?/python\d+(?:\.\d+)?t?|python\d+\.zip)/")
_SYSTEM_LIBRARY = re.compile(r"^(?:/usr(?:/local)?)?/lib(?:32|64|x32)?/|/libpython\d[\d.]*t?\.so")
_GENERATED = "__autograph_generated_file"  # TensorFlow's rewritten copy of a function, gone by now
_CYTHON = (".pyx", ".pxi", ".pxd")  # compiled, and named relative to a source tree that is not here
_NOTEBOOK_CELL = re.compile(r"^<ipython-input|/ipykernel_\d+/\d+\.py$")  # named after its text, in no file
_LIBRARY_SUFFIX = re.compile(r"(?:\.cpython-[^.]*|\.abi3)?\.so(?:\.[\d.]+)?$")

# Namespaces that say nothing to a reader.
_INLINE_NAMESPACE = re.compile(r"\(anonymous namespace\)::|\b(?:lts_\d+|__cxx11|__\d+)::")

_LAMBDA = re.compile(r"\{lambda\([^{}]*\)#\d+\}")
_SYSTEM_HEADER = re.compile(r"^/usr/(?:local/)?(?:include|lib)/")

# Kernels are what an expert looks for in a stack of TensorFlow.
_KERNEL = re.compile(r"(?<!Device)::Compute(?:Async)?(?:\(|$)")

# What runs between the decision to abort and the death; never the place of interest.
_DYING = frozenset({
    "abort", "raise", "gsignal", "kill", "tgkill", "pthread_kill", "__pthread_kill_implementation",
    "__pthread_kill_internal", "__libc_message", "malloc_printerr", "__assert_fail", "__assert_fail_base",
    "__stack_chk_fail", "__fortify_fail", "__chk_fail", "std::terminate", "__cxxabiv1::__terminate",
    "__gnu_cxx::__verbose_terminate_handler", "__cxa_throw", "__cxa_rethrow", "__cxa_call_terminate",
})  # fmt: skip
_LOGGING = re.compile(r"^(?:absl|tsl|tensorflow|google)::.*\bLogMessage")
# What runs in the program beside its own code; the first two in reports of older releases.
_FAULTLENS = re.compile(r"/faultlens/(?:inside|forecasting/measured|(?:\w+/)*guest)/")
_NAMELESS = frozenset({"", "?", "??"})
_GAP = re.compile(r"\(\d+ frames left out\)")
_LIBC = re.compile(r"(?:^|/)(?:libc|libpthread|libc-[\d.]+)\.so")


def is_own(frame: Frame) -> bool:
    """Whether the frame is in the user's own code: not an installed package, not Python's own."""
    if frame.own:
        return True
    path = frame.file if frame.kind == "python" else frame.library
    if not path or _INSTALLED.search(path) or _STANDARD_LIBRARY.search(path) or path.endswith(_CYTHON):
        return False
    if _FAULTLENS.search(path):
        return False
    if frame.kind == "native":
        return not _SYSTEM_LIBRARY.search(path) and bool(_LIBRARY_SUFFIX.search(path))
    return is_notebook_cell(path) or not (path.startswith("<") or _GENERATED in path)


def is_notebook_cell(path: str) -> bool:
    return bool(_NOTEBOOK_CELL.search(path))


def is_own_line(frame: Frame) -> bool:
    """Own code, at a line that is the user's: templates of the standard library are compiled into it."""
    return is_own(frame) and bool(frame.file and frame.line) and not _SYSTEM_HEADER.search(frame.file or "")


def user_frame(crash: Crash) -> Frame | None:
    """The innermost line of the user's own Python code on the stack that led to the end."""
    threads = (crash.launching_thread, crash.crashed_thread, main_thread(crash))
    alone = library_thread(crash)
    for thread in threads:
        if thread is None or (alone and not any(frame.library == alone for frame in thread.frames)):
            continue
        for frame in thread.frames:
            if frame.kind == "python" and is_own(frame):
                return frame
    return None


def library_thread(crash: Crash) -> str | None:
    """The library of the user's own that started the crashed thread for itself: what Python does meanwhile, outside of
    that library, has nothing to do with it."""
    thread = crash.crashed_thread
    if thread is None or is_main(thread, crash) or any(frame.kind == "python" for frame in thread.frames):
        return None
    known = (frame for frame in reversed(thread.frames) if frame.library and not _SYSTEM_LIBRARY.search(frame.library))
    outermost = next(known, None)
    return outermost.library if outermost is not None and is_own(outermost) else None


def main_thread(crash: Crash) -> Thread | None:
    return next((thread for thread in crash.threads if is_main(thread, crash)), None)


def is_main(thread: Thread, crash: Crash) -> bool:
    return thread.id == crash.pid if crash.pid is not None else thread.python_name == "MainThread"


def without_dying(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames without the innermost ones that only carry out an abort."""
    dying = 0
    for index, frame in enumerate(frames):
        if _is_dying(frame):
            dying = index + 1
        elif not (_is_libc(frame) or is_nameless(frame)):
            break
    return frames[dying:] or frames


def is_kernel(frame: Frame) -> bool:
    return frame.kind == "native" and bool(_KERNEL.search(frame.function))


def package_of(frame: Frame) -> str:
    """The short name under which people know the code of a frame: "keras", "libc", "python"."""
    path = frame.file if frame.kind == "python" else frame.library
    if not path:
        return "unknown code"
    if installed := _INSTALLED.search(path):
        return installed["package"].removesuffix(".py").removesuffix(".libs")
    if _STANDARD_LIBRARY.search(path) or path.startswith("<frozen"):
        return "python"
    name = _LIBRARY_SUFFIX.sub("", PurePosixPath(path).name)
    return "python" if re.fullmatch(r"(?:lib)?python[\d.]*t?", name) else name


def short_function(name: str) -> str:
    """A C++ function without its parameters and template arguments; other names as they are."""
    kept: list[str] = []
    depth = 0
    name = _LAMBDA.sub("{lambda}", _INLINE_NAMESPACE.sub("", name)).replace("operator()", "operator{}")
    for character in re.sub(r"operator([<>]{1,2}=?|->|<=>)", "operator", name):
        if character == "(" and depth == 0 and kept:
            break
        if character == "<" and kept:
            depth += 1
            if depth == 1:
                kept.append("<…>")
        elif character == ">" and depth:
            depth -= 1
        elif depth == 0:
            kept.append(character)
    short = "".join(kept).strip()
    if "operator" not in short:
        short = short.rpartition(" ")[2]  # a template's return type, "non-virtual thunk to"
    return short.replace("operator{}", "operator()") or name


def _is_dying(frame: Frame) -> bool:
    name = short_function(frame.function)
    return frame.kind == "native" and (name in _DYING or bool(_LOGGING.match(name)))


def gap(left_out: int) -> Frame:
    """Stands for frames in the middle of a stack that are not kept."""
    return Frame(kind="native", function=f"({left_out} frames left out)")


def is_gap(frame: Frame) -> bool:
    return frame.kind == "native" and bool(_GAP.fullmatch(frame.function))


def is_nameless(frame: Frame) -> bool:
    """Native code of which no symbol is known; "??" is what pystack says."""
    return frame.kind == "native" and frame.function in _NAMELESS


def _is_libc(frame: Frame) -> bool:
    return frame.kind == "native" and bool(frame.library and _LIBC.search(frame.library))
