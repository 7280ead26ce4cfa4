"""Where do the entropy-coded data of a JPEG end, and what stands in them that no encoder writes?"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

from faultlens.data import native

LIBRARY = Path(native.__file__).with_name("libfaultlens_images.so")
_LONG_FILL = b"\xff" * 65
_ORDER = bytes(range(0xD0, 0xD8))
# In the data, 0xFF is followed by 0, by itself (a filler) or by the number of a restart marker.
_END = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_RESTARTS = re.compile(rb"\xff([\xd0-\xd7])")
_ZEROS = re.compile(rb"\0+")


class Found(ctypes.Structure):
    """The same as in native/jpeg_data.c."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in "least zeros zeros_end restarts disorder fill".split())
    zeros: int  # where a run of at least so many begins; one up to the end is padding
    zeros_end: int  # 0: there is none
    restarts: int
    disorder: int  # one of them is not the one that is due
    fill: int  # a long run of 0xFF, as of erased memory


# Data, where they begin, how many zeros in a row are looked for (0: none) → where the marker behind them begins, the
# end if there is none; and what was found.
Finder = Callable[[bytes, int, int], tuple[int, Found]]


def in_python(data: bytes, start: int, least_zeros: int) -> tuple[int, Found]:
    marker = _END.search(data, start)
    end = marker.start() if marker else len(data)
    found = Found()
    found.fill = data.find(_LONG_FILL, start, end) >= 0
    if restarts := b"".join(_RESTARTS.findall(data, start, end)):
        found.restarts = len(restarts)
        found.disorder = not (_ORDER * (len(restarts) // len(_ORDER) + 1)).startswith(restarts)
    if least_zeros and (at := data.find(bytes(least_zeros), start, end)) >= 0:
        behind = _ZEROS.match(data, at, end).end()  # type: ignore[union-attr]  # there are some
        if behind < end:
            found.zeros, found.zeros_end = at, behind
    return end, found


def _in_c() -> Finder | None:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:  # no compiler was there
        return None
    library.fl_size_of_jpeg_data.restype = function_type = ctypes.c_uint64
    if library.fl_size_of_jpeg_data() != ctypes.sizeof(Found):
        return None
    function = library.fl_jpeg_data
    function.restype = function_type
    function.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)

    def find(data: bytes, start: int, least_zeros: int) -> tuple[int, Found]:
        found = Found(least_zeros)
        return function(data, len(data), start, ctypes.byref(found)), found

    return find


entropy = _in_c() or in_python
