"""Where do the entropy-coded data of a JPEG end, and which restart markers stand in them?"""

from __future__ import annotations

import re
from functools import lru_cache
from types import ModuleType
from typing import NamedTuple

CHUNK = 1 << 20
_LONG_FILL = b"\xff" * 64  # that no encoder writes
_ORDER = bytes(range(0xD0, 0xD8))
# In the data, 0xFF is followed by 0, by itself (a filler) or by the number of a restart marker.
_END = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_RESTARTS = re.compile(rb"\xff([\xd0-\xd7\xff])")
_NO_RESTART = re.compile(rb"[^\xd0-\xd7\xff]")


class Entropy(NamedTuple):
    end: int | None  # where the marker behind them begins; None: nowhere
    restarts: int = 0
    in_order: bool = True
    fill: bool = False  # a long run of 0xFF, as of erased memory


def entropy(data: bytes, start: int) -> Entropy:
    numpy = _numpy()
    end, codes = _by_expressions(data, start) if numpy is None else _by_numpy(numpy, data, start)
    if not codes:
        return Entropy(end)
    restarts = codes.replace(b"\xff", b"")
    whole, more = divmod(len(restarts), len(_ORDER))
    return Entropy(end, len(restarts), restarts == _ORDER * whole + _ORDER[:more], _LONG_FILL in codes)


def _by_numpy(numpy: ModuleType, data: bytes, start: int) -> tuple[int | None, bytes]:
    """Three times as fast."""
    values = numpy.frombuffer(data, numpy.uint8)
    codes = b""
    while start < len(data) - 1:
        chunk = values[start : start + CHUNK + 1]
        markers = (chunk[:-1] == 0xFF) & (chunk[1:] != 0)
        first = int(markers.argmax())
        if markers[first]:
            if _NO_RESTART.match(data, start + first + 1):
                return start + first, codes
            where = markers.nonzero()[0]
            found = chunk[where + 1].tobytes()
            if end := _NO_RESTART.search(found):
                return start + int(where[end.start()]), codes + found[: end.start()]
            codes += found
        start += CHUNK
    return None, codes


def _by_expressions(data: bytes, start: int) -> tuple[int | None, bytes]:
    found = _END.search(data, start)
    end = found.start() if found else len(data)
    return found and end, b"".join(_RESTARTS.findall(data, start, end))


@lru_cache(1)
def _numpy() -> ModuleType | None:
    try:
        import numpy
    except ImportError:
        return None
    return numpy
