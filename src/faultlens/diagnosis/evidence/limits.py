"""What was left of the limits when the program ended, and what failed for want of memory."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.messages import GIVES_UP, line_saying
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Evidence
from faultlens.text.safe import last_lines, one_line

MIB = 1 << 20
FATAL = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGTRAP")
LAST = 5  # lines
THREAD_STACK = 8 * MIB  # what a thread takes of the address space unless told otherwise

# How programs say that memory could not be had.
NO_MEMORY = re.compile(
    r"std::bad_alloc|\bMemoryError\b|Cannot allocate memory|[Uu]nable to allocate [\d.]+ \wi?B|failed to map segment"
    r"|OOM when allocating|cannot allocate memory for thread-local|Failed to allocate|mmap failed|[Oo]ut of memory"
    r"|std::bad_array_new_length|RESOURCE_EXHAUSTED: Out of memory|ran out of memory trying to allocate"
)
# What is asked for then is small: something had used up the rest.
SMALL = re.compile(r"failed to map segment|cannot allocate memory for thread-local data")
_DEVICE = re.compile(r"\bGPU\b|CUDA|cuda|\bXPU\b|\bTPU\b|GPU:\d")  # memory of another kind
_USES_DEVICE = re.compile(r"GPU_\d+_bfc|Created device \S*GPU|StreamExecutor device \(\d+\): NVIDIA|Loaded cuDNN")
# How they say that no thread could be started: the reason may be any limit.
NO_THREAD = re.compile(
    r"pthread_create\(?\)? failed|creation via pthread_create|can't start new thread|can't create new thread"
    r"|Thread creation failed|unable to create (?:new native )?thread|blas_thread_init: pthread_create"
    r"|fork: retry: Resource temporarily"
    r"|what\(\):\s+Resource temporarily unavailable|Cannot create (?:worker )?thread"
    r"|resources for OMP thread|OMP: System error #11\b"
)
_NOT_NOW = re.compile(r"\[Errno 11\]")  # of locks and sockets as well
_FORKING = re.compile(r"/subprocess\.py:|/popen_\w+\.py:|/pty\.py:fork$|/multiprocessing/util\.py:spawnv")
# "Unable to allocate 7.45 TiB for an array with shape …", "trying to allocate 3.55PiB", "allocating 400 bytes"
_SIZE = re.compile(
    r"(?:[Uu]nable to allocate|[Tt]r(?:ying|ied) to allocate|[Ff]ailed to allocate(?: request for)?|memory allocating)"
    r" (?P<number>\d[\d.]*) ?(?P<unit>[KMGTPE]?)(?:i?B|bytes)\b"
)
_SHAPE = re.compile(r"OOM when allocating tensor with shape\[(?P<shape>[\d,]+)\] and type (?P<type>\w+)")
_ARRAY = re.compile(r"for an array with shape \((?P<shape>[\d, ]+)\)")
_ALLOCATOR = re.compile(r"^.*Allocator \(\w*cpu\w*\) ran out of memory trying to allocate ")
_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate(["", "K", "M", "G", "T", "P", "E"])}
_BYTES = {
    "complex128": 16,
    "double": 8,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "half": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


class Budget(NamedTuple):
    """A limit, and how much of it was used."""

    limit: int
    used: int

    @property
    def left(self) -> int:
        return self.limit - self.used


def address_space(crash: Crash) -> Budget | None:
    """None where the address space is not limited."""
    limit = crash.limits.get("RLIMIT_AS")
    if limit is None or limit.soft is None:
        return None
    memory = crash.memory
    return Budget(limit.soft, max((memory and memory.virtual_peak) or 0, (memory and memory.virtual) or 0))


def open_files(crash: Crash) -> Budget | None:
    limit = crash.limits.get("RLIMIT_NOFILE")
    if limit is None or limit.soft is None or crash.memory is None or crash.memory.open_files is None:
        return None
    return Budget(limit.soft, crash.memory.open_files)


def threads_refused(crash: Crash) -> int | None:
    """How often the control group refused a thread or process while the program ran; None where not counted."""
    before, after = crash.cgroup_before, crash.cgroup
    if before is None or after is None or before.pids_failures is None or after.pids_failures is None:
        return None
    return after.pids_failures - before.pids_failures


def oom_kills(crash: Crash) -> int | None:
    """How many processes of the control group the kernel killed meanwhile; None where not counted."""
    before, after = crash.cgroup_before, crash.cgroup
    if before is None or after is None or before.oom_kills is None or after.oom_kills is None:
        return None
    return after.oom_kills - before.oom_kills


def cpu_time_used_up(crash: Crash) -> int | None:
    """The hard limit of CPU seconds, where the program ran long enough to use it up with all its threads."""
    limit = crash.limits.get("RLIMIT_CPU")
    if limit is None or limit.hard is None:
        return None
    # The kernel counts whole seconds, and the last one is lost between two samples.
    return limit.hard if (crash.seconds or 0) * max(1, most_threads(crash)) >= limit.hard - 1 else None


def most_threads(crash: Crash) -> int:
    counts = [sample.threads for sample in crash.timeline if sample.threads]
    return max([*counts, (crash.memory and crash.memory.threads) or 0, len(crash.threads)])


def failed_allocation(case: Case) -> Evidence | None:
    """What tells that memory was asked for and not given."""
    if case.thrown is not None and case.thrown.type in ("std::bad_alloc", "std::bad_array_new_length"):
        return Evidence(fact=f"a C++ {case.thrown.type} was thrown just before the end", source="C++ exceptions")
    if case.termination is not None and "bad_alloc" in (case.termination.type or ""):
        return Evidence(fact="terminate called after throwing std::bad_alloc", source="stderr")
    if case.exception is not None:
        text = f"{case.exception.type}: {case.exception.details}"
        refused = NO_MEMORY.search(text) and not _of_device(case, text)
        return Evidence(fact=one_line(text.rstrip(": "), 200), source="traceback") if refused else None
    if (case.signal == "SIGABRT" or gave_up(case)) and (line := line_saying(case.crash, NO_MEMORY)):
        return Evidence(fact=one_line(line, 200), source="stderr")
    return None


def _of_device(case: Case, text: str) -> bool:
    """The memory of a GPU was asked for. XLA's words do not tell: then the lines do that TensorFlow prints of one."""
    if _DEVICE.search(text):
        return True
    return "Out of memory" in text and "CPU" not in text and bool(_USES_DEVICE.search(case.crash.output.stderr or ""))


def failed_thread(case: Case) -> Evidence | None:
    """What tells that a thread could not be started."""
    if case.exception is not None and case.fault is None:
        text = f"{case.exception.type}: {case.exception.details}"
        refused = NO_THREAD.search(text) or (_NOT_NOW.search(text) and forks(case))
        return Evidence(fact=one_line(text, 200), source="traceback") if refused and not raised_by_user(case) else None
    if case.thrown is not None and "Resource temporarily unavailable" in (case.thrown.message or ""):
        return Evidence(fact=f"{case.thrown.type}: {case.thrown.message}", source="C++ exceptions")
    died = case.fault is not None or (case.only_words and case.signal in FATAL) or gave_up(case)
    line = line_saying(case.crash, NO_THREAD) if died else None
    return Evidence(fact=one_line(line, 200), source="stderr") if line else None


def forks(case: Case) -> bool:
    """The exception came from a call that starts a process."""
    if case.fault is not None or case.exception is None:
        return False
    frames = case.exception.frames[:3]
    return any(_FORKING.search(f"{frame.file}:{frame.function}") for frame in frames) or "fork(" in _last_line(case)


def raised_by_user(case: Case) -> bool:
    """A program may raise MemoryError itself."""
    return _last_line(case).startswith("raise ")


def _last_line(case: Case) -> str:
    """The line that the traceback ends in, where it is the user's."""
    frame = case.exception.frames[0] if case.fault is None and case.exception and case.exception.frames else None
    lines = case.crash.sources.get(frame.file or "", "").split("\n") if frame else []
    number = (frame and frame.line) or 0
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def memory_total(crash: Crash) -> int | None:
    return crash.machine.memory_total if crash.machine else None


def requested(case: Case) -> int | None:
    """How much memory was asked for: in the words of the exception, else of TensorFlow's allocator."""
    said = requested_bytes(case.exception.details) if case.exception else None
    line = line_saying(case.crash, _ALLOCATOR) if said is None and failed_allocation(case) else None
    return requested_bytes(line) if line else said


def gave_up(case: Case) -> bool:
    """A library called exit(), and said why."""
    lines = last_lines(case.crash.output.stderr or "", LAST) if case.crash.outcome.kind == "exit" else []
    return any(GIVES_UP.search(line) for line in lines)


def requested_shape(text: str) -> str | None:
    """Of the tensor or array that a message says was asked for, as Python writes it."""
    match = _SHAPE.search(text) or _ARRAY.search(text)
    return f"({', '.join(re.findall(r'[0-9]+', match['shape']))})" if match else None


def requested_bytes(text: str) -> int | None:
    """How much memory a message says was asked for."""
    if match := _SIZE.search(text):
        return int(float(match["number"]) * _UNITS[match["unit"]])
    if match := _SHAPE.search(text):
        size = _BYTES.get(match["type"], 4)
        for extent in match["shape"].split(","):
            size *= int(extent or 1)
        return size
    return None
