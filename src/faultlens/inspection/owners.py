"""Whose code a native frame is: TensorFlow's, Python's, a package's, the system's, or the user's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from faultlens.inspection.frames import is_own
from faultlens.records.crash import Crash, Frame

Owner = Literal["tensorflow", "python", "numpy", "package", "system", "custom", "unknown"]

_TENSORFLOW = re.compile(r"/(?:site|dist)-packages/(?:tensorflow(?:_cpu|_intel)?|keras|tf_keras|jaxlib|tensorstore)/")
_NUMPY = re.compile(r"/(?:site|dist)-packages/numpy(?:\.libs)?/")
_PACKAGE = re.compile(r"/(?:site|dist)-packages/")
_PYTHON = re.compile(r"/libpython[\d.]+|/bin/(?:python|pypy)[\d.]*$|/lib-dynload/")
# Runtimes that carry out what others ask for: the place of a fault there says little.
_RUNTIME = re.compile(
    r"/(?:libc|libm|libstdc\+\+|libgcc_s|libpthread|ld-linux[^/]*|ld|libdl|librt|libffi|libc\+\+(?:abi)?"
    r"|libfaultlens_(?:agent|fence)|libjemalloc|libtcmalloc[^/]*|libmimalloc)[-.\d]*\.so"
)
_FFI = re.compile(r"/libffi[^/]*\.so")
_CTYPES = re.compile(r"/_(?:ctypes|cffi_backend)\.[^/]*so$")


def owner_of(frame: Frame) -> Owner:
    path = frame.library
    if frame.kind != "native" or not path:
        return "unknown"
    if is_runtime(path):
        return "system"
    if _PYTHON.search(path):
        return "python"
    if _TENSORFLOW.search(path):
        return "tensorflow"
    if _NUMPY.search(path):
        return "numpy"
    if _PACKAGE.search(path):
        return "package"
    return "custom" if is_own(frame) else "system"


def is_runtime(path: str) -> bool:
    return bool(_RUNTIME.search(path))


def is_ffi(frame: Frame) -> bool:
    """libffi, through which ctypes and cffi call foreign functions; some interpreters have it built in."""
    return bool(_FFI.search(frame.library or "")) or frame.function.startswith("ffi_call")


def is_ctypes(frame: Frame) -> bool:
    return bool(_CTYPES.search(frame.library or ""))


def is_custom(path: str) -> bool:
    """A library that is neither the system's nor an installed package's: built by the user, or for them."""
    return owner_of(Frame(kind="native", function="", library=path)) == "custom" and ".so" in path


def custom_libraries(crash: Crash) -> tuple[str, ...]:
    """With the executable of a program without Python."""
    own = {frame.library: None for each in crash.threads for frame in each.frames if frame.own and frame.library}
    return (*(library.path for library in crash.libraries if is_custom(library.path)), *own)


def first_owned(frames: Iterable[Frame], *owners: Owner) -> Frame | None:
    return next((frame for frame in frames if owner_of(frame) in owners), None)
