"""What the program's own messages say about its end: failed checks, heap damage, missing resources."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.records.crash import Crash

# "F0000 00:00:1 42 tensor.cc:1120] Check failed: …" and, before TensorFlow 2.17, "…: F tensorflow/core/x.cc:12] …"
_FATAL_LOG = re.compile(r"^(?:F\d{4} [\d:.]+ +\d+|\d[\d-]+ [\d:.]+: F) (?P<place>\S+:\d+)\] (?P<text>.*)$", re.M)
_GLUED = re.compile(r"(?<=[^\n])(?=F\d{4} \d\d:\d\d:[\d.]+ +\d+ \S+:\d+\] |\d{4}-\d\d-\d\d [\d:.]+: F \S+:\d+\] )")
_TERMINATE = re.compile(
    r"terminate called (?:after throwing an instance of '(?P<type>[^']+)'|without an active exception|recursively)"
    r"(?:\s*\n\s+what\(\):\s*(?P<what>.*))?"
)
# What allocators say of a damaged heap: glibc's (and its checks', mcheck's), then tcmalloc's, jemalloc's, mimalloc's,
# Scudo's, and Python's own under PYTHONMALLOC=debug or -X dev.
HEAP_OVERFLOW = re.compile(
    r"malloc\(\): (?:invalid size|corrupted|mismatching|unaligned|invalid next|unsorted|memory corruption|chunk"
    r"|\w+ double linked list)[^\n]*"
    r"|corrupted size vs\. prev_size[^\n]*|corrupted (?:double-linked list|unsorted chunks)[^\n]*"
    r"|free\(\): (?:invalid next|corrupted|too many chunks|chunks in)[^\n]*|malloc assertion failure in \w+[^\n]*"
    r"|malloc\.c:\d+ \(\w+\): assertion failed[^\n]*|invalid fastbin entry[^\n]*"
    r"|(?:mremap_chunk|tcache_thread_shutdown)\(\)[^\n]*"
    r"|malloc_consolidate\(\)[^\n]*|realloc\(\): invalid next[^\n]*|break adjusted to free[^\n]*"
    r"|(?:sysmalloc|_int_malloc|sysfree\w*|heap_trim): Assertion[^\n]*|malloc: top chunk is corrupt[^\n]*"
    r"|Fatal glibc error: malloc[^\n]*"
    r"|memory clobbered (?:before|past end of) allocated block[^\n]*"
    r"|(?:[Mm]emory stomping|[Pp]otential memory corruption|corrupted pointer)[^\n]*"
    r"|<jemalloc>: (?:Corrupt redzone|Write-after-free)[^\n]*"
    r"|mimalloc: error: (?:buffer overflow|corrupted)[^\n]*|Scudo ERROR: corrupted chunk[^\n]*"
    r"|bad (?:leading|trailing) pad byte[^\n]*"
)
DOUBLE_FREE = re.compile(
    r"(?:free\(\): )?double free[^\n]*|free\(\): double free detected[^\n]*|block freed twice[^\n]*"
    r"|memory was freed twice[^\n]*|Possible double free[^\n]*"
)
SURELY_TWICE = re.compile(r"double free detected|fasttop")  # the other words are said of any damage
INVALID_FREE = re.compile(
    r"free\(\): invalid (?:pointer|size)[^\n]*|munmap_chunk\(\): invalid pointer[^\n]*"
    r"|realloc\(\): invalid (?:pointer|old size)[^\n]*|[Aa]ttempt to free invalid pointer[^\n]*"
    r"|free\(\): unaligned chunk[^\n]*|_int_free[^\n]*"
)
_LINE_LIMIT = 4000
# What TensorFlow puts around the message of an op: the graph it ran in, the lines that wrote it, several at once.
_WRAPPED = re.compile(r"^(?:Graph execution error:|\d+ root error\(s\) found\.)\s*$")
_WRAPPING = re.compile(
    r"^\s*$|^\s+(?!\(\d+\) )|^Detected at node |^Node: |^<stack traces unavailable>|^Stack trace for op definition:"
    r"|^\d+ root error\(s\) found\.|^Graph execution error:"
)
_BEFORE = re.compile(
    r"^\s*(?:\(\d+\)\s+(?:[A-Z_]+|[A-Z][a-z]+(?: [a-z]+)*):\s*)?(?:\{\{(?:function_)?node [^}]*\}\}\s*)*"
)
_AFTER = re.compile(r"\s*(?:\[\[(?:\{\{)?node .*|\[Op:\w+\](?: name:.*)?)$")
# After these words libraries call exit() by themselves: its code is not the program's.
GIVES_UP = re.compile(
    r"cannot allocate memory for thread-local data|libgomp: Thread creation failed|OMP: Error #\d+"
    r"|symbol lookup error: |version [`'][\w.]+' not found \(required by"
)
THROWN = re.compile(r"^terminate called after throwing an instance of '[^']+'")
THROWN_FOR_WANT = re.compile(  # of memory, threads or files
    r"std::bad_alloc|std::length_error|std::bad_array_new_length|Resource temporarily unavailable|random_device"
    r"|google::protobuf::FatalException"
)
FAILED_CHECK = re.compile(r"(?:^F\d{4} |: F )\S.*\] Check failed: ")
NOT_OF_ARGUMENTS = re.compile(
    r"pthread_create|CUDA|cuda|coordination_service|Too many open files|No space left|[Oo]ut of memory|random_device"
)
STACK_SMASHED = re.compile(r"\*\*\* (?:stack smashing|buffer overflow) detected \*\*\*[^\n]*")
# Of TensorFlow's coordination service: who has not come yet. More than these may be missing.
_WAITED_FOR = re.compile(
    r"Waiting for (?P<missing>\d+)/(?P<all>\d+) tasks to connect[^\n]*"
    r"(?:\n[^\n]*stragglers:(?P<names>(?:\s*\n?/job:\S+)+))?"
)
_CONNECTED = re.compile(
    r"all (?:\d+ )?tasks? (?:have|has) connected|has connected to coordination service|barrier\([^)\n]*\) has passed",
    re.I,
)


class CheckFailure(NamedTuple):
    text: str  # "Check failed: limit <= dim0_size (10 vs. 9)"
    place: str  # "tensor.cc:1120"


class Termination(NamedTuple):
    """What the C++ runtime said before it aborted."""

    type: str | None
    what: str | None


def fatal_on_its_own(text: str) -> str:
    """Behind a progress bar, the line with the reason begins in the middle of another."""
    return _GLUED.sub("\n", text)


def check_failure(crash: Crash) -> CheckFailure | None:
    matches = list(_FATAL_LOG.finditer(fatal_on_its_own(crash.output.stderr or "")))
    return CheckFailure(matches[-1]["text"].strip(), matches[-1]["place"]) if matches else None


def stragglers(crash: Crash) -> str | None:
    """ "/job:worker/replica:0/task:1": the tasks of a cluster that are still waited for, as far as they are named."""
    text = crash.output.stderr or ""
    matches = list(_WAITED_FOR.finditer(text))
    if not matches or _CONNECTED.search(text, matches[-1].end()):
        return None
    missing = int(matches[-1]["missing"])
    names = (matches[-1]["names"] or "").split()[:3]
    return ", ".join(names) or (f"{missing} of {matches[-1]['all']} tasks of the cluster" if missing > 0 else None)


def termination(crash: Crash) -> Termination | None:
    matches = list(_TERMINATE.finditer(crash.output.stderr or ""))
    return Termination(matches[-1]["type"], matches[-1]["what"]) if matches else None


def plain_message(details: str) -> str:
    """What an exception says, on one line: its first, or that of the op which TensorFlow reports on."""
    lines = details.split("\n")
    telling = (line for line in lines if not _WRAPPING.match(line)) if _WRAPPED.match(lines[0]) else iter(lines)
    line = next(telling, lines[0])
    return _AFTER.sub("", _BEFORE.sub("", line)).strip() or line.strip()


def said(crash: Crash, pattern: str | re.Pattern[str]) -> str | None:
    """The last text that matches, in glibc's message or on stderr."""
    text = f"{crash.output.stderr or ''}\n{crash.abort_message or ''}"
    matches = list(re.finditer(pattern, text))
    return matches[-1][0].strip() if matches else None


def line_saying(crash: Crash, pattern: re.Pattern[str]) -> str | None:
    """The last whole line that matches, in glibc's message or on stderr; of a huge line only its beginning."""
    lines = f"{crash.output.stderr or ''}\n{crash.abort_message or ''}".split("\n")
    found = (line[:_LINE_LIMIT] for line in reversed(lines) if pattern.search(line[:_LINE_LIMIT]))
    return next((line.strip() for line in found), None)
