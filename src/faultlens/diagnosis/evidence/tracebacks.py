"""The Python tracebacks in a program's error output, and the one that ended it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from faultlens.diagnosis.evidence.messages import plain_message
from faultlens.inspection.frames import is_own
from faultlens.records.crash import Frame

_HEADER = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d{1,9}), in (?P<function>.+)$')
# faulthandler's: the innermost call first, of each thread.
_DUMPED = re.compile(r"^Current thread 0x[0-9a-f]+[^\n]*\(most recent call first\):\n((?:  File [^\n]*\n?)+)", re.M)
_DUMPED_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d{1,9}) in (?P<function>.+)$', re.M)
_EXCEPTION = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:)?$")
# Colours, and the bars that the members of an exception group stand behind.
_DECORATION = re.compile(r"\x1b\[[0-9;]*m|^(?: {2})*(?:\| |\+ |\+-+ ?)", re.M)
_WRITTEN = re.compile(r"^Detected at node .* defined at ", re.M)
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_WORKER = '"""'  # multiprocessing and concurrent.futures quote the traceback of the worker
# With these lines Python introduces exceptions that do not end the program.
_SIDESHOW = re.compile(r"^(?:Exception ignored |Exception in thread |Error in atexit|Process \S*Process-\d)")
_THREAD = re.compile(r"^Exception in thread (?P<name>.+?):$")
_DESTRUCTORS = ("__del__", "__dealloc__")


class PythonException(NamedTuple):
    """The uncaught exception at the end of the error output, frames innermost first."""

    type: str
    message: str  # what it says, on one line; without what TensorFlow puts around it
    frames: tuple[Frame, ...]
    details: str = ""  # the whole message
    written: Frame | None = None  # the user's line that wrote the op, where a graph ran it


class _Block(NamedTuple):
    before: str  # the line before the traceback
    quoted: bool  # inside of the message of the one before: tf.py_function, tf.data.Dataset.from_generator
    exception: PythonException


def uncaught_exception(text: str) -> PythonException | None:
    """The last exception that ended the program; where a worker or a callback raised it, with its frames first."""
    blocks = list(_blocks(_DECORATION.sub("", text).split("\n")))
    serious = [block for block in blocks if not _is_sideshow(block)] or blocks
    if not serious:
        return None
    last = serious[-1]
    if len(serious) > 1:
        before = serious[-2]
        if last.quoted:
            return last.exception._replace(frames=last.exception.frames + before.exception.frames)
        if before.before == _WORKER and last.before in _CHAINED:
            return before.exception._replace(frames=before.exception.frames + last.exception.frames)
    return last.exception


def dumped_frames(text: str) -> tuple[Frame, ...]:
    """Where the thread stood that died, as faulthandler printed it."""
    dumps = _DUMPED.findall(text)
    return tuple(map(_made, _DUMPED_FRAME.finditer(dumps[-1]))) if dumps else ()


def failed_thread(text: str) -> tuple[str, str] | None:
    """The last thread that an exception ended, as Python names it, and what it says."""
    for block in reversed(list(_blocks(_DECORATION.sub("", text).split("\n")))):
        if match := _THREAD.match(block.before):
            error = block.exception
            return f"thread {match['name']}", f"{error.type}: {error.message}".removesuffix(": ")
    return None


def _is_sideshow(block: _Block) -> bool:
    # Cython prints the traceback of an exception that it ignores before it says so.
    return bool(_SIDESHOW.match(block.before)) or block.exception.frames[-1].function.endswith(_DESTRUCTORS)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    starts = [index for index, line in enumerate(lines) if line.strip().endswith(_HEADER)]
    if any(_FRAME.match(line) for line in lines[: starts[0] if starts else len(lines)]):
        starts.insert(0, -1)  # only the end of a long traceback was kept
    for start, end in pairwise([*starts, len(lines)]):
        before = next((line.strip() for line in reversed(lines[: max(start, 0)]) if line.strip()), "")
        quoted = not lines[start + 1].strip() if start + 1 < end else False
        if exception := _exception(lines[start + 1 : end]):
            yield _Block(before, quoted, exception)


def _exception(lines: Sequence[str]) -> PythonException | None:
    frames: list[Frame] = []
    for index, line in enumerate(lines):
        if frame := _frame(line):
            frames.append(frame)
        elif frames and not line.startswith(" ") and (match := _EXCEPTION.match(line)):
            first = match["message"] or ""
            details = "\n".join([first, *_until_next(lines[index + 1 :])]).strip()
            message = plain_message(details) if first else ""
            return PythonException(match["type"], message, tuple(reversed(frames)), details, _written(details))
    return None


def _written(details: str) -> Frame | None:
    """TensorFlow names the node that failed, and the stack that wrote it, the innermost call last."""
    parts = _WRITTEN.split(details, maxsplit=2)
    lines = parts[1].split("\n")[1:] if len(parts) > 1 else []
    own = None
    for line in lines:
        frame = _frame(line)
        if frame is None and line.strip():
            break
        own = frame if frame is not None and is_own(frame) else own
    return own


def _frame(line: str) -> Frame | None:
    match = _FRAME.match(line)
    return _made(match) if match else None


def _made(match: re.Match[str]) -> Frame:
    return Frame(kind="python", function=match["function"], file=match["file"], line=int(match["line"]))


def _until_next(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() in _CHAINED or line.strip() == _WORKER or _SIDESHOW.match(line):
            return
        yield line
