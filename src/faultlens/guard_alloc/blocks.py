"""Was a guarded block misused when the process died, and whose was it?"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from faultlens import guard_alloc
from faultlens.guard_alloc import layout
from faultlens.inspection.memory import Memory
from faultlens.inspection.owners import is_custom
from faultlens.inspection.symbols import native_frames
from faultlens.records.crash import Address, Fault, FencedBlock, Frame, Hunt, Mapping, Misuse

NEAR = 64 * 1024  # further away, an address may have nothing to do with the block
LINES_SECONDS = 10.0
_ADDRESS = re.compile(r"^0x[0-9a-f]{1,16}$")
_HEADERS = re.compile(r"/include/|-packages/")
_LINE = re.compile(r"^(/.*|[^?].*):(\d+)(?: \(discriminator \d+\))?$")


def hunt_in(table: Path, pid: int, fault: Fault | None, memory: Memory, mappings: Sequence[Mapping]) -> Hunt | None:
    """What the guarding allocator knows about a process that is held at its death."""
    state = guard_alloc.state(table, pid)
    block = _at_fault(table, pid, fault, mappings) or _found(table, pid, mappings)
    if block is None and state is not None:
        block = _damaged(table, pid, memory, mappings)
    return _hunt(state, block) if state or block else None


def hunt_after(table: Path, pid: int) -> Hunt | None:
    """The same where the process is gone: what it left."""
    found = guard_alloc.found(table, pid)
    mappings = [
        Mapping(start=Address(start), end=Address(end), permissions="r-xp", path=path)
        for start, end, path in sorted(found.libraries if found else ())
    ]
    state = guard_alloc.state(table, pid)
    return _hunt(state, _found(table, pid, mappings)) if state else None


def _hunt(state: guard_alloc.State | None, block: FencedBlock | None) -> Hunt:
    if state is None:  # a forked child that allocated nothing: its parent's block
        return Hunt(block=block)
    chosen = (state.guarded + state.passed) * state.every
    one_of = max(round(chosen / state.guarded), 1) if state.guarded and state.every else None
    watched: Literal["some", "tensors", "all"]
    watched = "all" if state.every == 1 else "tensors" if state.aligned_every == 1 else "some"
    return Hunt(fenced=state.guarded, one_of=one_of, watched=watched, block=block, problem=state.problem)


def _at_fault(table: Path, pid: int, fault: Fault | None, mappings: Sequence[Mapping]) -> FencedBlock | None:
    if fault is None or fault.address is None or fault.signal not in ("SIGSEGV", "SIGBUS"):
        return None
    block = guard_alloc.read(table, fault.address, pid)
    misuse = misuse_of(block) if block else None
    return record(misuse, "access", block, mappings) if block and misuse else None


def misuse_of(block: guard_alloc.Allocation) -> Misuse | None:
    """What an access at the address from which the block is seen does to it; None where the address is too far away to
    have been meant for the block."""
    inside = 0 <= block.offset < block.size
    if inside:
        return "use after free" if block.state == "freed" else None
    if block.state == "freed" or not -NEAR <= block.offset < block.size + NEAR:
        return None
    return "underflow" if block.offset < 0 else "overflow"


def _found(table: Path, pid: int, mappings: Sequence[Mapping]) -> FencedBlock | None:
    found = guard_alloc.found(table, pid)
    if found is None or found.block is None:
        return None
    return record(found.kind, "exit" if found.at_exit else "free", found.block, mappings)


def _damaged(table: Path, pid: int, memory: Memory, mappings: Sequence[Mapping]) -> FencedBlock | None:
    """A block that was not freed yet, beside which something was overwritten."""
    for block in guard_alloc.live_blocks(table, pid):
        end = block.start + block.size
        behind = memory.read(end, -end % layout.PAGE)
        if stained := behind.lstrip(bytes([layout.PAINT])):
            offset = block.size + len(behind) - len(stained)
            return record("overflow", "death", block._replace(offset=offset), mappings)
        before = memory.read(block.start - block.start % layout.PAGE, block.start % layout.PAGE)
        if stained := before.rstrip(bytes([layout.PAINT])):
            return record("underflow", "death", block._replace(offset=len(stained) - len(before) - 1), mappings)
    return None


def record(
    misuse: Misuse,
    seen: Literal["access", "free", "exit", "death"],
    block: guard_alloc.Allocation,
    mappings: Sequence[Mapping],
) -> FencedBlock:
    now = time.time()
    return FencedBlock(
        misuse=misuse,
        seen=seen,
        start=Address(block.start),
        size=block.size,
        offset=block.offset,
        made=_frames(block.made, mappings),
        made_by=block.made_by,
        made_before=_before(block.made_at, now),
        freed=_frames(block.freed, mappings),
        freed_by=block.freed_by,
        freed_before=_before(block.freed_at, now),
    )


def _before(then: float | None, now: float) -> float | None:
    return round(max(now - then, 0.0), 3) if then is not None else None


def _frames(addresses: Sequence[int], mappings: Sequence[Mapping]) -> tuple[Frame, ...]:
    return with_lines(native_frames(addresses, mappings))


def with_lines(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Source lines for the user's own code, as far as it was built with -g and binutils are there."""
    tool = shutil.which("addr2line")
    custom = {frame.library for frame in frames if frame.library and is_custom(frame.library)}
    lines = {library: _lines_of(tool, library, frames) for library in custom} if tool else {}
    return tuple(_with_line(frame, lines.get(frame.library or "", {})) for frame in frames)


def _lines_of(tool: str, library: str, frames: Sequence[Frame]) -> dict[int, list[tuple[str, int]]]:
    """By offset: the line, and those that it was inlined into."""
    # A return address stands behind its call.
    offsets = [frame.offset - 1 for frame in frames if frame.library == library and frame.offset]
    words = [tool, "-a", "-i", "-e", library, *map(hex, offsets)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=LINES_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[int, list[tuple[str, int]]] = {}
    lines: list[tuple[str, int]] = []
    for text in done.stdout.splitlines():
        if _ADDRESS.match(text):
            lines = found.setdefault(int(text, 16) + 1, [])
        elif match := _LINE.match(text):
            lines.append((match[1], int(match[2])))
    return found


def _with_line(frame: Frame, lines: dict[int, list[tuple[str, int]]]) -> Frame:
    """Templates of the C++ library are compiled into the code that uses them: that is what is told."""
    there = [line for line in lines.get(frame.offset or -1, ()) if line[1]]
    line = next((line for line in there if not _HEADERS.search(line[0])), there[0] if there else None)
    return replace(frame, file=line[0], line=line[1]) if line else frame
