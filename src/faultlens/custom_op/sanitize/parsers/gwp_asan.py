"""What GWP-ASan and the allocator around it (scudo) wrote to stderr before the program died."""

from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.sanitize.reports import Frame, Reported, Stack, bytes_of, stacks_of

TOOL = "GWP-ASan"
_BEGIN = "*** GWP-ASan detected a memory error ***"
_KIND = re.compile(r"^(Use After Free|Double Free|Invalid \(Wild\) Free|Buffer Overflow|Buffer Underflow) ")
_RULES = {
    "Use After Free": "use-after-free",
    "Double Free": "double-free",
    "Invalid (Wild) Free": "bad-free",
    "Buffer Overflow": "heap-overflow",
    "Buffer Underflow": "heap-overflow",
}
_FRAME = re.compile(r"^(?P<module>/.*)\((?P<symbol>[^()+]*)\+0x(?P<offset>[0-9a-f]+)\) \[0x[0-9a-f]+\]$")
# Where it says "to the right of" a freed block, it means into it: the addresses tell.
_PLACE = re.compile(r" at 0x([0-9a-f]+) \(.*? (\d+)-byte allocation at 0x([0-9a-f]+)\) by thread")


def parse(text: str) -> Iterator[Reported]:
    if _BEGIN not in text:
        return
    lines = text.partition(_BEGIN)[2].splitlines()
    head = next(((found, line) for line in lines if (found := _KIND.match(line.strip()))), None)
    if head is None:
        return
    found, line = head
    stacks = [(heading, tuple(map(_placed, frames))) for heading, frames in stacks_of(lines)]
    others = [Stack(says, frames) for heading, frames in stacks[1:] if (says := _says(heading))]
    frames = stacks[0][1] if stacks else ()
    yield Reported(_RULES[found[1]], _words(found[1].lower(), line), TOOL, frames, tuple(others), (found[1],))


def _words(kind: str, line: str) -> str:
    if not (place := _PLACE.search(line)):
        return kind
    size = int(place[2])
    offset = int(place[1], 16) - int(place[3], 16)
    if offset < 0:
        where = f"{bytes_of(-offset)} before the start of"
    else:
        where = f"{bytes_of(offset)} into" if offset < size else f"{bytes_of(offset - size)} past the end of"
    return f"{kind}, {where} a block of {bytes_of(size)}"


def _placed(frame: Frame) -> Frame:
    """ "/src/op.so(_ZN2Op7ComputeEv+0x85) [0x7f…]": no line, but a place in a library."""
    found = _FRAME.match(frame.function)
    if not found:
        return frame
    return Frame(found["symbol"], module=found["module"], offset=int(found["offset"], 16))


def _says(heading: str) -> str:
    if "was deallocated by" in heading:
        return "freed here"
    return "allocated here" if "was allocated by" in heading else ""
