"""What glibc said before it aborted ("double free or corruption (out)"), from its variable __abort_msg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from faultlens.inspection.maps import locate
from faultlens.inspection.memory import Memory, read_u64
from faultlens.inspection.symbols import value_of
from faultlens.records.crash import Mapping

MAX_MESSAGE = 16 << 10


def abort_message(memory: Memory, mappings: Sequence[Mapping]) -> str | None:
    """__abort_msg points to struct abort_msg_s { unsigned int size; char msg[]; }, or to nothing."""
    libc = next((each for each in mappings if PurePath(each.path or "").name == "libc.so.6"), None)
    place = locate(mappings, libc.start) if libc else None
    offset = value_of(place.path, "__abort_msg") if place else None
    if place is None or offset is None:
        return None
    message = read_u64(memory, place.base + offset)
    if not message:
        return None
    size = int.from_bytes(memory.read(message, 4), "little")
    data = memory.read(message + 4, min(size, MAX_MESSAGE)).split(b"\0", 1)[0]
    return data.decode("utf-8", "replace").strip() or None
