"""What the program said before its end: the lines that matter, and the Python exception that ended it."""

from __future__ import annotations

import re

from faultlens.diagnosis.evidence.messages import fatal_on_its_own
from faultlens.diagnosis.evidence.tracebacks import PythonException, uncaught_exception
from faultlens.records.crash import Crash
from faultlens.text.safe import last_lines

_LINES_SEARCHED = 200
_LINES_SHOWN = 4
_LINES_OF_CONTEXT = 2

# With these lines libraries say why they are about to call abort().
_ABORT_LINES = (
    r"Check failed:", r"^F\d{4} ", r": F tensorflow/", r"Assertion .* failed", r"pure virtual method called",
    r"\*\*\* .* detected \*\*\*", r"\bmalloc\w*\(", r"free\(\): ", r"double free or corruption",
    r"corrupted size vs", r"corrupted double-linked list", r"munmap_chunk\(\)", r"OMP: Error",
    r"Fatal Python error", r"^terminate called", r"^\s+what\(\): ",
)  # fmt: skip
# And with these, what they could not do.
_FAILURE_LINES = (
    r"AddressSanitizer", r"bad_alloc", r"MemoryError", r"RESOURCE_EXHAUSTED", r"CUDA_ERROR", r"cudaError",
    r"Resource temporarily unavailable", r"Cannot allocate memory", r"No space left", r"Too many open files",
    r"undefined symbol", r"cannot open shared object",
)  # fmt: skip
# Chatter, and what faulthandler prints (the stacks are shown from better sources).
_NOISE_LINES = (
    r"^[IW]\d{4} ", r": [IW] (?:tensorflow|external)/", r"^To enable the following instructions",
    r"^Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating)",
    r"^(?:Current t|T)hread 0x", r"^  File \"", r"^Extension modules:", r"^  <no Python frame>",
    r"^  \.\.\.$", r"^WARNING: All log messages", r"^\*\*\* (?:Begin|End) ", r"^\s*@ +0x",
    r"^\s*\d+/\d+ .*[━=.]", r"^Traceback \(most recent", r"^  Garbage-collecting",
    r"^faultlens: ",
)  # fmt: skip
_ABORTS = re.compile("|".join(_ABORT_LINES))
_MATTERS = re.compile("|".join(_ABORT_LINES + _FAILURE_LINES))
_NOISE = re.compile("|".join(_NOISE_LINES))
_WHAT = re.compile(r"^\s+what\(\):\s*(.*)")
# "F0000 00:00:1763294400.000213    4242 tensor_shape.cc:587] Check failed: …": only the place and the text
# say anything.
_LOG_PREFIX = re.compile(r"^(?:F\d{4} [\d:.]+ +\d+|[-\d]+ [\d:.]+: F) (\S+:\d+)\] (.*)$")


def last_words(crash: Crash) -> list[str]:
    """The lines that say most about the end; the last ones when none stands out."""
    lines = _telling_lines(crash)
    telling = [line for line in lines if _MATTERS.search(line)][-_LINES_SHOWN:]
    words = list(dict.fromkeys(telling or lines[-_LINES_OF_CONTEXT:]))
    message = (crash.abort_message or "").strip()
    if message and not any(message in line for line in words):
        words.append(message)
    return words


def abort_reason(crash: Crash) -> str | None:
    """Why abort() was called, in the words of the code that called it."""
    if crash.abort_message:
        return crash.abort_message.strip()
    lines = _telling_lines(crash)
    for index, line in reversed([*enumerate(lines)]):
        if index and (what := _WHAT.match(line)):
            thrown = lines[index - 1].rpartition("instance of ")[2]
            return f"uncaught C++ exception {thrown}: {what[1]}"
        if _ABORTS.search(line):
            return line
    return None


def python_exception(crash: Crash) -> PythonException | None:
    return uncaught_exception(crash.output.stderr or "")


def _telling_lines(crash: Crash) -> list[str]:
    lines = last_lines(fatal_on_its_own(crash.output.stderr or ""), _LINES_SEARCHED)
    return [_LOG_PREFIX.sub(r"\2 (\1)", line) for line in lines if not _NOISE.search(line)]
