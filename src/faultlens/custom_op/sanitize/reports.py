"""What a sanitizer reported, in one form for all of them: a kind, the stack of the access, other stacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from faultlens.records.diagnosis import Location


class Frame(NamedTuple):
    function: str
    file: str = ""  # empty: the compiler left no line numbers
    line: int = 0
    column: int = 0
    module: str = ""  # where only the place in a library is known
    offset: int = 0


class Stack(NamedTuple):
    says: str  # "allocated here"
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Reported:
    rule: str  # of rules.RULES
    words: str  # "write of 4 bytes, 0 bytes past the end of a block of 40 bytes"
    tool: str  # "AddressSanitizer"
    frames: tuple[Frame, ...] = ()
    others: tuple[Stack, ...] = ()
    facts: tuple[str, ...] = ()
    noted: str = ""  # under this name the guest noted Python's lines, in the order of the reports
    order: int = 0
    op: str = ""
    weak: bool = False  # worth a warning, no more
    called_from: Location | None = None  # the line of Python, where the tool tells it itself

    @property
    def damages(self) -> bool:
        """Whether memory of others is not what it was."""
        return self.words.startswith("write of") or self.rule in ("double-free", "bad-free")


# "    #1 0x7f in Op::Compute() /src/op.cc:27:5"; ThreadSanitizer: "    #0 Op::Compute() /src/op.cc:27 (op.so+0x1)"
_FRAME = re.compile(r"^\s*#\d+\s+(?:0x[0-9a-f]+\s+(?:in\s+)?)?(?P<rest>.*)$")
_MODULE = re.compile(r"\s+\([^()]*\+0x[0-9a-f]+\)(?:\s+\(BuildId: \w+\))?$")
_PLACE = re.compile(r"^(?P<function>.*?)\s+(?P<file>\S[^:]*?):(?P<line>\d+)(?::(?P<column>\d+))?$")


def frame_of(line: str) -> Frame | None:
    if not (found := _FRAME.match(line)):
        return None
    rest = _MODULE.sub("", found["rest"]).removesuffix(" <null>")
    if place := _PLACE.match(rest):
        file = place["file"]
        # Blanks in a path cannot be told from those of the function but by its beginning.
        if (slash := rest.find(" /")) >= 0 and (whole := _PLACE.match(f"f {rest[slash + 1 :]}")):
            return Frame(
                rest[:slash], _unfolded(rest[slash + 1 :], whole), int(place["line"]), int(place["column"] or 0)
            )
        return Frame(place["function"], file, int(place["line"]), int(place["column"] or 0))
    return Frame(rest)


def _unfolded(text: str, place: re.Match[str]) -> str:
    behind = f":{place['line']}" + (f":{place['column']}" if place["column"] else "")
    return text.removesuffix(behind)


def sections(text: str, begin: re.Pattern[str]) -> Iterator[tuple[re.Match[str], list[str]]]:
    """Each line that is a beginning, with the lines up to the next one."""
    head, lines = None, list[str]()
    for line in text.splitlines():
        if found := begin.match(line):
            if head:
                yield head, lines
            head, lines = found, []
        else:
            lines.append(line)
    if head:
        yield head, lines


def stacks_of(lines: Iterable[str]) -> Iterator[tuple[str, tuple[Frame, ...]]]:
    """Each run of frames with the line above it."""
    heading, frames = "", list[Frame]()
    for line in lines:
        if frame := frame_of(line):
            frames.append(frame)
            continue
        if frames:
            yield heading, tuple(frames)
            frames = []
        if line.strip():
            heading = line.strip()
    if frames:
        yield heading, tuple(frames)


def bytes_of(number: str | int) -> str:
    return "1 byte" if int(number) == 1 else f"{int(number):,} bytes"
