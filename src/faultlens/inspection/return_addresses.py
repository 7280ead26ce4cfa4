"""Where a call returns to may lie behind the end of the function that called: a call that never returns can be its
last instruction. What was called from there is told by the address before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec.structs import replace

from faultlens.inspection import symbols
from faultlens.records.crash import Address, Frame

_SIGNAL_FRAME = "__restore_rt"  # below it stands the instruction that the signal interrupted


def within(stack: Sequence[Frame]) -> list[Address | None]:
    """For each frame, innermost first, an offset in its library that surely lies inside of its function."""
    interrupted = {stack[0].address} if stack else set()
    interrupted |= {outer.address for inner, outer in pairwise(stack) if inner.function == _SIGNAL_FRAME}
    return [
        frame.offset if not frame.offset or frame.address in interrupted else Address(frame.offset - 1)
        for frame in stack
    ]


def name_callers(stacks: Iterable[list[Frame]]) -> None:
    """pystack names the function at the return address, which may be the next one."""
    callers = [(stack, at, offset) for stack in stacks for at, offset in _callers(stack)]
    wanted: dict[str, set[int]] = {}
    for stack, at, offset in callers:
        wanted.setdefault(stack[at].library or "", set()).update((offset, offset + 1))
    found = {path: symbols.lookup(path, offsets) for path, offsets in wanted.items()}
    for stack, at, offset in callers:
        names = found[stack[at].library or ""]
        caller, behind = names.get(offset), names.get(offset + 1)
        if caller is not None and caller.exact and caller != behind:
            stack[at] = replace(stack[at], function=caller.name)


def _callers(stack: Sequence[Frame]) -> Iterable[tuple[int, int]]:
    """Frames at return addresses, without those that were inlined into them, and an offset inside of their function."""
    outer = [*(frame.address for frame in stack[1:]), None]
    for at, (frame, offset) in enumerate(zip(stack, within(stack), strict=True)):
        if frame.library and offset is not None and offset != frame.offset and frame.address != outer[at]:
            yield at, offset
