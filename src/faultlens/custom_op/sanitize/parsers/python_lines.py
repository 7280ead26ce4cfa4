"""What faulthandler wrote when a sanitizer reported: the line of the program that called the op."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from faultlens.records.diagnosis import Location

_BEGIN = re.compile(r"^@(\w+) (0x[0-9a-f]+)$")
_THREAD = re.compile(r"^(Current thread|Thread) (0x[0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_NOT_THE_PROGRAM = re.compile(r"/(site|dist)-packages/|/lib(64)?/python\d|^<")
_EXECUTES = re.compile(r"/tensorflow/python/(eager|ops|framework)/|/keras/")


class Noted(NamedTuple):
    kind: str  # "asan"
    location: Location | None


def parse(text: str) -> list[Noted]:
    noted: list[Noted] = []
    kind, thread = "", ""
    threads: dict[str, list[Location]] = {}
    current: list[Location] = []
    for line in [*text.splitlines(), "@end 0x0"]:
        if begin := _BEGIN.match(line):
            if kind:
                noted.append(Noted(kind, _line(threads, thread)))
            kind, thread, threads = begin[1], begin[2], {}
        elif found := _THREAD.match(line):
            current = threads.setdefault(_plain(found[2]), [])
        elif frame := _FRAME.match(line):
            current.append(Location(frame[1], int(frame[2]), frame[3]))
    return noted


def _line(threads: dict[str, list[Location]], reporter: str) -> Location | None:
    """Of the thread that reports; a worker of TensorFlow's has no Python, but whoever waits for it has."""
    if own := threads.get(_plain(reporter)):
        return line_of_program(own)
    waiting = [frames for frames in threads.values() if any(_EXECUTES.search(frame.file) for frame in frames[:8])]
    lines = {line for frames in waiting if (line := line_of_program(frames))}
    return lines.pop() if len(lines) == 1 else None


def line_of_program(frames: Iterable[Location]) -> Location | None:
    """The innermost one that is neither of a package nor of the library."""
    return next((frame for frame in frames if not _NOT_THE_PROGRAM.search(frame.file)), None)


def _plain(number: str) -> str:
    return hex(int(number, 16))
