"""Which lines of source an address of a library belongs to, as the compiler noted it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from faultlens.custom_op.sanitize.reports import Frame, Reported, Stack
from faultlens.inspection.symbols import value_of

SECONDS = 60.0


def lines_at(library: Path | str | None, offset: int) -> list[Frame]:
    """Innermost first: functions that were put into others are told apart."""
    if library is None:
        return []
    words = ["addr2line", "-e", str(library), "-f", "-C", "-i", hex(offset)]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []
    frames = []
    for function, place in zip(said[::2], said[1::2], strict=False):
        file, _, line = place.split(" (")[0].rpartition(":")
        if line.isdecimal() and file != "??":
            frames.append(Frame(function, file, int(line)))
    return frames


def with_lines(reported: Reported) -> Reported:
    """A report that knows only places in libraries, with their lines."""
    others = tuple(Stack(other.says, _resolved(other.frames)) for other in reported.others)
    return replace(reported, frames=_resolved(reported.frames), others=others)


def _resolved(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    return tuple(found for frame in frames for found in (_lines(frame) or [frame]))


def _lines(frame: Frame) -> list[Frame]:
    if not frame.module:
        return []
    begin = value_of(frame.module, frame.function) if frame.function else 0
    return lines_at(frame.module, begin + frame.offset - 1) if begin is not None else []
