"""What holds the memory of a program at one moment, in words: only what was seen, the largest first."""

from __future__ import annotations

from collections.abc import Iterator

from faultlens.records.crash import Frame, Held, Holder, HolderKind
from faultlens.supervise.retainers import HeapSnapshot, Inside, Large, items_in_words
from faultlens.system.memory_limit import MACHINE
from faultlens.text.sizes import MIB, in_words

WORTH_TELLING = 0.02  # of what is used in all
MUCH = 0.2
MOST = 6
_NAMES = {"EagerTensor": "tensor", "ResourceVariable": "variable", "ndarray": "array"}
_KINDS: dict[str, HolderKind] = {"EagerTensor": "tensors", "ResourceVariable": "tf variables"}


def retained(snapshot: HeapSnapshot) -> tuple[Holder, ...]:
    used = snapshot.room.used if snapshot.room else 0
    found = [*(_inside(snapshot.inside, used) if snapshot.inside else ()), *_outside(snapshot)]
    found = [holder for holder in found if (holder.size or 0) >= max(WORTH_TELLING * used, MIB)]
    return tuple(sorted(found, key=lambda holder: -(holder.size or 0))[:MOST])


def retained_at(snapshot: HeapSnapshot | None, started: float) -> Held | None:
    """The record of a snapshot. `started` by the monotonic clock."""
    if snapshot is None or snapshot.room is None:
        return None
    seconds = snapshot.inside.time - started if snapshot.inside and snapshot.inside.time else snapshot.seconds
    return Held(
        seconds=round(seconds, 3),
        used=snapshot.room.used,
        limit=snapshot.room.limit,
        limit_of="machine" if snapshot.room.where == MACHINE else "control group",
        inside=snapshot.inside is not None,
        steps=snapshot.inside.steps if snapshot.inside else snapshot.steps,
        holders=retained(snapshot),
    )


def largest(inside: Inside) -> Iterator[Holder]:
    """Single tensors, variables and arrays, and containers of them."""
    for large in inside.largest:
        place = Frame(kind="python", function="", file=large.file) if large.file else None
        yield Holder(kind=_kind(large), text=_text(large), count=large.length, size=large.size, place=place)


def _inside(inside: Inside, used: int) -> Iterator[Holder]:
    told = list(largest(inside))
    yield from told
    for kind, noun, (count, size) in (
        ("tensors", "eager tensors", inside.tensors),
        ("tf variables", "tf.Variables", inside.variables),
    ):
        if size - sum(holder.size or 0 for holder in told if holder.kind == kind) >= WORTH_TELLING * used:
            text = f"all {count:,} {noun} together: {in_words(size)}"
            yield Holder(kind=kind, text=text, count=count, size=size)  # type: ignore[arg-type]
    yield from _native(inside, used)


def _native(inside: Inside, used: int) -> Iterator[Holder]:
    """What Python objects were seen to hold has its memory from malloc, too."""
    if inside.malloc is None:
        return
    others = sum(large.size for large in inside.largest if large.length is not None and not _is_of_tensors(large))
    seen = inside.tensors[1] + inside.variables[1] + inside.arrays + others
    size = inside.malloc[0] - seen
    if size < MUCH * used:
        return
    caches = f"; Dataset.cache ({inside.caches}) keeps what it has read there" if inside.caches else ""
    text = f"the native heap: {in_words(size)} in use that no Python object was seen to hold{caches}"
    yield Holder(kind="native heap", text=text, size=size)


def _outside(snapshot: HeapSnapshot) -> Iterator[Holder]:
    shared = max(sum(snapshot.outside.shared.values()), snapshot.outside.memory.get("shared memory", 0))
    if shared:
        files = f", {len(snapshot.outside.shared):,} files in /dev/shm" if snapshot.outside.shared else ""
        yield Holder(kind="shared memory", text=f"shared memory: {in_words(shared)}{files}", size=shared)
    if snapshot.inside is None:
        size = snapshot.outside.memory.get("heap", 0) + snapshot.outside.memory.get("mappings", 0)
        text = f"heap and anonymous mappings: {in_words(size)}; what is in them could not be seen"
        yield Holder(kind="mappings", text=text, size=size)


def _text(large: Large) -> str:
    """ "the array `images` (global of train.py): float32[3000,1000], 11.4 MiB"."""
    owner = large.owner or "whose owner was not seen"
    name = _NAMES.get(large.type, large.type)
    if large.length is None:
        what = f"{large.what}, " if large.what else ""
        return f"the {name} {owner}: {what}{in_words(large.size)}"
    return f"the {name} {owner}: {large.length:,} {items_in_words(large.what)}, about {in_words(large.size)} in all"


def _kind(large: Large) -> HolderKind:
    return "tensors" if _is_of_tensors(large) else _KINDS.get(large.type, "python objects")


def _is_of_tensors(large: Large) -> bool:
    return large.type == "EagerTensor" or large.what.startswith("EagerTensor")
