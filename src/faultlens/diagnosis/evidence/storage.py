"""Whether a file system ran full: under a mapped file, or while something was written."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.diagnosis.evidence.addresses import PAGE, file_at
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.records.diagnosis import Evidence
from faultlens.text.safe import one_line

MIB = 1 << 20
LINE = 4000
NO_SPACE = re.compile(
    r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]|\bENOSPC\b|errno = 28\b"
    r"|Not enough free space to write|\d+ requested and \d+ written"  # NumPy
)
_IN_MEMORY = ("/dev/shm/", "/run/shm/", "/memfd:", "/dev/hugepages/")
# Libraries and functions that write files: a crash below them may follow from a failed write.
_WRITERS = re.compile(r"libhdf5|/h5py/|libz\.|libsqlite|libarrow|libtiff|netcdf")
_WRITING = re.compile(
    r"^_?_?(?:write|fwrite|pwrite|fclose|fflush|fsync|close)$|::(?:Flush|Append|Close|Sync)\b|SaveV2|Checkpoint"
)

FLUSH_FAILED = 120
_NOT_FLUSHED = r"Exception ignored in: <_io\.\w+ name='<std(?:out|err)>'[^\n]*(?:\n[^\n]*){0,3}?\n\w+Error:[^\n]*"


class FullMapping(NamedTuple):
    """A page of a mapped file could not be had because its file system was full."""

    path: str
    offset: int
    free: int | None
    in_memory: bool  # the file system is a tmpfs


def full_mapping(case: Case) -> FullMapping | None:
    fault = case.fault
    if fault is None or fault.signal != "SIGBUS" or fault.address is None:
        return None
    found = file_at(case.crash, fault.address)
    if found is None or found.mapping.path is None:
        return None
    path, state, machine = found.mapping.path.removesuffix(" (deleted)"), found.state, case.crash.machine
    if state is not None and state.size is not None and found.offset >= -(-state.size // PAGE) * PAGE:
        return None  # behind the end of the file: it was truncated
    in_shm = path.startswith(_IN_MEMORY)
    free = state.disk_free if state else None
    if free is None and in_shm and machine is not None:
        free = machine.shm_free
    if free is None or free >= MIB:
        return None
    return FullMapping(path, found.offset, free, in_shm or _is_tmpfs(case))


def _is_tmpfs(case: Case) -> bool:
    """Touched pages of a tmpfs count as shared memory, those of a disk as file pages."""
    memory = case.crash.memory
    return memory is not None and (memory.rss_shared or 0) > MIB


def no_space_message(case: Case) -> Evidence | None:
    """Where the program was told that no space is left: in the exception that ended it, or before."""
    if case.exception is not None and NO_SPACE.search(text := f"{case.exception.type}: {case.exception.details}"):
        return Evidence(fact=one_line(text, 240), source="traceback")
    if line := line_saying(case.crash, NO_SPACE):
        return Evidence(fact=one_line(line, 240), source="stderr")
    lines = [line for line in (case.crash.output.stdout or "").split("\n") if NO_SPACE.search(line[:LINE])]
    return Evidence(fact=one_line(lines[-1], 240), source="stdout") if lines else None


def writes_files(case: Case) -> bool:
    """The crashed thread was writing or closing a file."""
    return any(
        _WRITERS.search(frame.library or "") or (frame.kind == "native" and _WRITING.search(frame.function))
        for frame in case.stack
    )


def lost_output(case: Case) -> str | None:
    """What Python says of output that it could not write at its end, which it ends with an exit code of its own for."""
    return case.said(_NOT_FLUSHED) if case.crash.outcome.exit_code == FLUSH_FAILED else None
