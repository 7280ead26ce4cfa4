"""What the fence of `run --hunt` proves about a block of memory, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from faultlens.diagnosis.evidence.ops import loads_tensorflow
from faultlens.inspection.frames import is_kernel, short_function
from faultlens.inspection.owners import Owner, first_owned, is_ctypes, is_ffi, owner_of
from faultlens.records.crash import Crash, FencedBlock, Frame

FENCE = "fence"  # the source of evidence
_CHAIN = 3
_SHORT_S = 30.0
_NEAREST = 3  # frames, beyond which it was somebody else who asked
_NAMES: dict[Owner, str] = {"numpy": "NumPy", "tensorflow": "TensorFlow", "python": "Python"}
_SEEN = {
    "free": "when it was freed",
    "exit": "when the program ended",
    "death": "when the program died",
}
_FENCES = {
    "--hunt=tensors": "--hunt=tensors, for every tensor",
    "--hunt=all": "--hunt=all, for every block, slowly",
}
Facts = list[tuple[str, str]]


def block_of(crash: Crash) -> FencedBlock | None:
    return crash.hunt.block if crash.hunt else None


def place_in(block: FencedBlock) -> str:
    """ "8 bytes behind the end of a block of 400 bytes"."""
    of = f"a block of {_bytes(block.size)}"
    if block.misuse in ("use after free", "double free"):
        return f"{of} that had been freed"
    if block.misuse == "invalid free":
        return f"an address {_bytes(abs(block.offset))} {'into' if block.offset >= 0 else 'before'} {of}"
    if block.offset < 0:
        return f"{_bytes(-block.offset)} before {of}"
    behind = block.offset - block.size
    return f"{_bytes(behind)} behind the end of {of}" if behind else f"right behind the end of {of}"


def seen(block: FencedBlock) -> str:
    return _SEEN.get(block.seen, "at once")


def facts_of(block: FencedBlock) -> Facts:
    """Its history, as evidence."""
    made = f"it was allocated by {_chain(block.made)}{_when(block.made_before)} on thread {block.made_by}"
    facts = [(_misuse(block), FENCE), (made, FENCE)]
    if block.freed_by is not None:
        freed = f"it was freed by {_chain(block.freed)}{_when(block.freed_before)} on thread {block.freed_by}"
        facts.append((freed, FENCE))
    return facts


def allocator(block: FencedBlock) -> str:
    """Who asked for the block, in a word: its own code, or the runtime that did it for Python."""
    if own := own_frame(block.made):
        return _called(own)
    nearest = [frame for frame in block.made if owner_of(frame) != "system" or is_ffi(frame)][:_NEAREST]
    if any(map(is_ffi, nearest)):
        return "Python, through ctypes,"
    if any(map(is_ctypes, nearest)):
        return "ctypes"
    return next((_NAMES[owner_of(frame)] for frame in block.made if owner_of(frame) in _NAMES), None) or _chain(
        block.made
    )


def without_hit(crash: Crash) -> str | None:
    """What a hunt that caught nothing is worth."""
    hunt = crash.hunt
    if hunt is None or hunt.block is not None:
        return None
    if hunt.problem:
        return f"nothing was fenced, because {hunt.problem}"
    share = f"one of {hunt.one_of:,} allocations was" if hunt.one_of else "few were"
    step = next_hunt(crash)
    return f"no fenced block was touched; {share} fenced. Run it again" + (f", or with {_FENCES[step]}" if step else "")


def next_hunt(crash: Crash) -> str | None:
    """The option that would fence more than this run did; None where all was to be fenced."""
    hunt, tensors = crash.hunt, loads_tensorflow(crash)
    if hunt is None:  # of a short run one of many allocations is too few, and all of them are no burden
        return "--hunt=all" if not tensors and crash.seconds is not None and crash.seconds < _SHORT_S else "--hunt"
    if hunt.watched == "some" and tensors:
        return "--hunt=tensors"
    return "--hunt=all" if hunt.watched != "all" else None


def in_full(crash: Crash) -> Facts:
    """The block and all that is known of it, as names and values."""
    block = block_of(crash)
    if block is None:
        return []
    stacks = [("allocated by", block.made), ("freed by", block.freed)]
    at = f"{_bytes(block.size)} at {block.start!r}; {_misuse(block)}"
    return [("block", at), *((name, " ← ".join(map(_called, frames))) for name, frames in stacks if frames)]


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of code that the user built."""
    return first_owned(frames, "custom")


def asked_by_python(frames: Sequence[Frame]) -> bool:
    """Python called, through ctypes, the very function that allocated or freed."""
    above: list[Frame] = []
    for frame in frames:
        if is_ctypes(frame):
            return len(above) <= 1
        if owner_of(frame) != "system":
            above.append(frame)
    return False


def _misuse(block: FencedBlock) -> str:
    if block.misuse == "double free":
        return f"a block of {_bytes(block.size)} was freed a second time"
    if block.misuse == "invalid free":
        return f"{place_in(block)} was freed"
    if block.misuse == "use after free":
        return f"byte {block.offset} of {place_in(block)} was used"
    if block.seen == "access":
        return f"the address lies {place_in(block)}"
    return f"bytes were overwritten {place_in(block)}, seen {seen(block)}"


def _chain(frames: Sequence[Frame]) -> str:
    """Who asked for it: from the innermost frame of interest outwards. The user's code comes first, then a kernel."""
    known = [frame for frame in frames if owner_of(frame) not in ("system", "unknown", "python")] or list(frames[:1])
    telling = own_frame(known) or next((frame for frame in known if is_kernel(frame)), None)
    start = known.index(telling) if telling else 0
    names = dict.fromkeys(_called(frame) for frame in known[start:])
    return " ← ".join(list(names)[:_CHAIN]) or "code that is not known"


def _called(frame: Frame) -> str:
    if frame.file and frame.line:
        return f"{short_function(frame.function)} ({PurePosixPath(frame.file).name}:{frame.line})"
    return f"{short_function(frame.function)} of {PurePosixPath(frame.library or '?').name}"


def _when(seconds: float | None) -> str:
    return f" {seconds:.1f} s before" if seconds is not None else ""


def _bytes(number: int) -> str:
    return "1 byte" if number == 1 else f"{number:,} bytes"
