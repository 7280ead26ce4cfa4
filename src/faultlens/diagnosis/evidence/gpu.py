"""What tells of the GPU: errors of the CUDA runtime, the driver's lines in the kernel log, device addresses."""

from __future__ import annotations

import re
from typing import NamedTuple

from faultlens.diagnosis.evidence.addresses import NULL_PAGE, mapping_at
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.imports import final_text, line_at
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.crash import Crash
from faultlens.text.safe import one_line

# "NVRM: Xid (PCI:0000:04:00): 31, pid=2047, name=python3, … MMU Fault …"
_XID = re.compile(r"Xid \([^)]*\): (?P<number>\d+),?(?: pid=(?P<pid>'?<?\w+>?'?))?")
_CUDA_LIBRARY = re.compile(r"/lib(?:cuda|cudart|nvidia-ml)[^/]*\.so")
_DEVICE_FILE = re.compile(r"^/dev/nvidia")
RESERVED = 64 << 20  # larger than what glibc keeps back for its arenas: address space for device memory
_PINS = re.compile(Wording.PINS_MEMORY.value)
_BLOCKING = "CUDA_LAUNCH_BLOCKING"


class GpuError(NamedTuple):
    text: str  # the line that names the error
    log: str | None  # the driver's line about it


def gpu_error(case: Case, pattern: re.Pattern[str], *xids: int) -> GpuError | None:
    """The program ended with this error; the kernel log alone tells only when the program died of a signal."""
    if case.crash.outcome.kind not in ("exception", "signal", "exit", "timeout", "hang"):
        return None
    text = final_text(case)
    match = pattern.search(text)
    return GpuError(one_line(line_at(text, match), 240), driver_line(case, *xids)) if match else None


def driver_line(case: Case, *xids: int) -> str | None:
    """The driver's line about this process with one of these numbers."""
    for line in reversed(case.crash.kernel_log):
        match = _XID.search(line)
        if match and int(match["number"]) in xids and match["pid"] in (None, str(case.crash.pid)):
            return one_line(line, 240)
    return None


def pins_memory(case: Case) -> str | None:
    """What tells that page-locked host memory was asked for: the function that raised, or the user's line."""
    frames = case.exception.frames[:6] if case.exception else ()
    frame = next((frame for frame in frames if _PINS.search(f"{frame.function} {frame.file}")), None)
    if frame is not None:
        return f"raised in {frame.function} ({frame.file}:{frame.line})"
    line = case.mentions(Wording.PINS_MEMORY)
    here = case.location
    return f"line {line.line} pins memory: {line.text}" if line and here and line.line == here.line else None


def uses_cuda(crash: Crash) -> bool:
    return any(_CUDA_LIBRARY.search(library.path) for library in crash.libraries)


def launches_block(crash: Crash) -> bool:
    return crash.program.environment.get(_BLOCKING) == "1"


def device_memory_at(crash: Crash, address: int) -> str | None:
    """Why the address is one of the GPU's: the driver's mapping, or address space reserved for device memory."""
    if address < NULL_PAGE or not uses_cuda(crash):
        return None
    mapping = mapping_at(crash, address)
    if mapping is None:
        return None
    if _DEVICE_FILE.match(mapping.path or ""):
        return f"{address:#x} lies in a mapping of {mapping.path}"
    if "r" not in mapping.permissions and mapping.path is None and mapping.end - mapping.start >= RESERVED:
        return f"{address:#x} lies in address space that is reserved, and not accessible to the CPU"
    return None
