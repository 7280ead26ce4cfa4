"""What grew between two heap snapshots of a program, in words: only what was seen to grow, the largest first."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from faultlens.inspection.census import Outside
from faultlens.records.crash import Frame, Growth, GrowthKind, Holder
from faultlens.system.cgroup import Room
from faultlens.text.sizes import KIB, in_words

# Of the growth that is to be explained.
WORTH_TELLING = 0.1
EXPLAINED = 0.7
OFTEN = 0.02  # a step: less is chance
MANY_OBJECTS = 10
MOST = 4
_PLURALS = {"str": "strings", "bytes": "bytes objects", "dict": "dicts", "list": "lists", "tuple": "tuples"}


class Grown(msgspec.Struct):
    """A container that has more items than before: guest/census.py."""

    type: str
    length: int
    grew: int
    items: str
    each: int
    most: int | None = None  # a deque that may not become longer
    owner: str | None = None
    file: str | None = None


class Large(msgspec.Struct):
    """A tensor, a variable, an array, or a container of such: guest/largest.py."""

    type: str
    what: str  # "float32[256,1000]"; of a container, one of its items
    size: int
    length: int | None = None  # of a container
    owner: str | None = None
    file: str | None = None


class Inside(msgspec.Struct):
    """The answer of guest/census.py."""

    number: int = 0  # what it says has grown, has since the one before
    time: float = 0.0  # by the monotonic clock, which all processes share
    steps: int | None = None
    complete: bool = False
    types: dict[str, int] = {}
    grown: list[Grown] = []
    tensors: tuple[int, int] = (0, 0)
    largest: list[Large] = []
    arrays: int = 0  # bytes of those that were found
    variables: tuple[int, int] = (0, 0)
    variables_made: list[tuple[str, str | None, int | None, int]] = []
    traces: list[tuple[str, str | None, int | None, int]] = []
    blocks: int = 0  # of memory that Python has more
    malloc: tuple[int, int] | None = None
    collections: int = 0  # of all garbage
    caches: int = 0  # of tf.data
    seconds: float = 0.0
    problem: str | None = None


class HeapSnapshot(NamedTuple):
    seconds: float
    steps: int | None
    outside: Outside
    inside: Inside | None
    room: Room | None = None

    def follows(self, other: HeapSnapshot) -> bool:
        """Whether what grew inside in between is known."""
        one, two = other.inside, self.inside
        return bool(one and two and one.complete and two.complete and two.number == one.number + 1)


class _Span(NamedTuple):
    """How far two snapshots are apart."""

    steps: int | None
    seconds: float

    def rate(self, count: float) -> str:
        """ "1 more a step", "40 more a second"."""
        whole, unit = (self.steps, "step") if self.steps else (self.seconds, "second")
        return f"{_number(count / max(whole, 0.1))} more a {unit}"

    def items(self, count: int) -> str:
        """ "1 item a step"."""
        number, unit = (count / self.steps, "step") if self.steps else (count / max(self.seconds, 0.1), "second")
        said = _number(number)
        return f"{said} item{'' if said == '1' else 's'} a {unit}"

    def size_rate(self, size: float) -> str:
        whole, unit = (self.steps, "step") if self.steps else (self.seconds, "second")
        return f"{in_words(round(size / max(whole, 0.1)))} a {unit}"

    def often(self, count: int) -> bool:
        return count >= max(3, OFTEN * (self.steps or 0))


def read_answer(line: bytes, pid: int) -> Inside | None:
    """None: the line is about something else."""
    try:
        record: Any = msgspec.json.decode(line)
        if not isinstance(record, dict) or record.get("pid") != pid or "census" not in record:
            return None
        return msgspec.convert(record["census"], Inside)
    except msgspec.MsgspecError:
        return None


def holders(what: GrowthKind, first: HeapSnapshot, second: HeapSnapshot, rate: float) -> tuple[Holder, ...]:
    """`rate`: the growth with each step, or each second where steps are not known."""
    span = _span(first, second)
    if what == "open files":
        found = _counted(what, first.outside.files, second.outside.files, span, "descriptors")
    elif what == "threads":
        found = _counted(what, first.outside.threads, second.outside.threads, span, "threads")
    elif what == "shared memory":
        found = list(_shared(first.outside, second.outside, span))
    elif what == "GPU memory":
        found = _seen_inside(first, second, span)
    else:
        found = list(_memory(first, second, span, rate * (span.steps or span.seconds)))
    return tuple(sorted(found, key=lambda holder: -(holder.size or 0) or -(holder.count or 0))[:MOST])


def is_harmless(first: HeapSnapshot, second: HeapSnapshot, rate: float) -> bool:
    """Whether memory grows in a way that comes to an end by itself: a deque of limited length is filled, memory that
    was allocated before is touched for the first time, or malloc keeps what was freed."""
    if first.inside is None or second.inside is None or not second.follows(first):
        return False
    span = _span(first, second)
    grew = rate * (span.steps or span.seconds)
    filled = sum(grown.grew * grown.each for grown in second.inside.grown if grown.most is not None)
    if filled >= grew / 2:
        return True
    left = grew - sum(holder.size or 0 for holder in _inside(first.inside, second.inside, span))
    before, after = first.inside.malloc, second.inside.malloc
    if left < grew / 2 or before is None or after is None or after[0] - before[0] >= left / 2:
        return False
    return after[1] - before[1] >= left / 2 or second.outside.reserved - first.outside.reserved < left / 2


def is_undecided(first: HeapSnapshot, second: HeapSnapshot) -> bool:
    """The answers from inside do not follow each other; or there are more objects, but Python has not collected all
    garbage in between, and they may be that."""
    if first.inside is None or second.inside is None:
        return first.inside is not second.inside
    if not second.follows(first):
        return True
    more = max(second.inside.types.values(), default=0)
    collected = first.inside.collections != second.inside.collections
    return not collected and _span(first, second).often(more) and more >= MANY_OBJECTS


def has_owner(growth: Growth) -> bool:
    """Something that Python sees holds the memory."""
    return any(
        holder.kind not in ("native heap", "mappings") and "not seen" not in holder.text for holder in growth.holders
    )


def _memory(first: HeapSnapshot, second: HeapSnapshot, span: _Span, grew: float) -> Iterator[Holder]:
    seen = _seen_inside(first, second, span)
    seen = [holder for holder in seen if holder.size is None or holder.size >= WORTH_TELLING * grew]
    yield from seen
    explained = sum(holder.size or 0 for holder in seen)
    if explained < EXPLAINED * grew and not any(holder.kind == "graph traces" for holder in seen):
        yield from _unexplained(first, second, span, explained, grew - explained)


def _seen_inside(first: HeapSnapshot, second: HeapSnapshot, span: _Span) -> list[Holder]:
    if first.inside is None or second.inside is None or not second.follows(first):
        return []
    return list(_inside(first.inside, second.inside, span))


def _inside(first: Inside, second: Inside, span: _Span) -> Iterator[Holder]:
    yield from _containers(second, span)
    yield from _variables(first, second, span)
    yield from _traces(first, second, span)
    held = any(grown.items.startswith("EagerTensor") for grown in second.grown)
    count, size = (after - before for after, before in zip(second.tensors, first.tensors, strict=True))
    if not held and span.often(count) and size > 0:
        text = f"eager tensors: {span.rate(count)}, {span.size_rate(size)}; who keeps them was not seen"
        yield Holder(kind="tensors", text=text, count=count, size=size)


def _containers(second: Inside, span: _Span) -> Iterator[Holder]:
    for grown in second.grown:
        if not span.often(grown.grew):
            continue
        owner = grown.owner or "whose owner was not seen"
        each = f", {in_words(grown.each)} each" if grown.each >= KIB else ""
        text = f"the {grown.type} {owner} grew by {span.items(grown.grew)}: {items_in_words(grown.items)}{each}"
        kind = "tensors" if grown.items.startswith("EagerTensor") else "python objects"
        place = Frame(kind="python", function="", file=grown.file) if grown.file else None
        yield Holder(kind=kind, text=text, count=grown.grew, size=grown.grew * grown.each, place=place)  # type: ignore[arg-type]


def _variables(first: Inside, second: Inside, span: _Span) -> Iterator[Holder]:
    count, size = (after - before for after, before in zip(second.variables, first.variables, strict=True))
    if not span.often(count):
        return
    _, file, line, made = _most_more(first.variables_made, second.variables_made)
    # They may have been made elsewhere, if that line made fewer than there are more.
    place = Frame(kind="python", function="", file=file, line=line) if file and made >= count / 2 else None
    at = f", made at {os.path.basename(file or '')}:{line}" if place else ""
    text = f"tf.Variable: {span.rate(count)}, {span.size_rate(size)}{at}; there are {second.variables[0]:,}"
    yield Holder(kind="tf variables", text=text, count=count, size=size, place=place)


def _traces(first: Inside, second: Inside, span: _Span) -> Iterator[Holder]:
    name, file, line, more = _most_more(first.traces, second.traces)
    if not span.often(more):
        return
    total = next(entry[3] for entry in second.traces if entry[:3] == (name, file, line))
    place = Frame(kind="python", function=name, file=file, line=line) if file else None
    at = f" ({os.path.basename(file)}:{line})" if file else ""
    short = name.rpartition(".")[2]
    text = f"tf.function `{short}`{at} was traced {total:,} times, {span.rate(more)}: every trace is kept"
    yield Holder(kind="graph traces", text=text, count=more, place=place)


def _most_more(
    before: list[tuple[str, str | None, int | None, int]], after: list[tuple[str, str | None, int | None, int]]
) -> tuple[str, str | None, int | None, int]:
    counts = {entry[:3]: entry[3] for entry in before}
    more = [(*entry[:3], entry[3] - counts.get(entry[:3], 0)) for entry in after]
    # Of a function and those traced within it, all as often, the user's own is the one to name.
    return max(more, key=lambda entry: (entry[3], entry[1] is not None), default=("", None, None, 0))


def _unexplained(
    first: HeapSnapshot, second: HeapSnapshot, span: _Span, explained: int, left: float
) -> Iterator[Holder]:
    """Memory that no Python object was seen to hold. Those that were seen have theirs from malloc, too."""
    before, after = (each.inside.malloc if each.inside else None for each in (first, second))
    names = [os.path.basename(path) for path in second.outside.libraries]
    theirs = f"; native libraries of your own are loaded: {', '.join(names[:3])}" if names else ""
    if before and after:
        used = after[0] - before[0] - explained
        if used >= left / 2:
            text = f"the native heap: {span.size_rate(used)} more in use{_whose(first, second, span)}{theirs}"
            yield Holder(kind="native heap", text=text, size=used)
            return
    heap, mapped = (
        second.outside.memory.get(kind, 0) - first.outside.memory.get(kind, 0) for kind in ("heap", "mappings")
    )
    count = second.outside.mappings - first.outside.mappings
    if heap >= left / 2:
        yield Holder(kind="native heap", text=f"[heap]: {span.size_rate(heap)} more{theirs}", size=heap)
    elif mapped >= left / 2:
        more = f", {span.rate(count)}" if span.often(count) else ""
        text = f"anonymous mappings: {span.size_rate(mapped)}{more}{theirs}"
        yield Holder(kind="mappings", text=text, size=mapped, count=count if span.often(count) else None)


def _whose(first: HeapSnapshot, second: HeapSnapshot, span: _Span) -> str:
    if first.inside is None or second.inside is None or not second.follows(first):
        return ""
    if span.steps and second.inside.blocks >= span.steps:
        return f"; objects of Python: {span.rate(second.inside.blocks)}, too, whose owner was not seen"
    return ", which no Python object was seen to hold: most often a C extension or an op that does not free"


def _counted(what: GrowthKind, before: Counter[str], after: Counter[str], span: _Span, noun: str) -> list[Holder]:
    found = []
    for name, count in (after - before).most_common(MOST):
        if span.often(count):
            text = f"{after[name]:,} {noun} of `{name}`, {span.rate(count)}"
            found.append(Holder(kind=what, text=text, count=count))  # type: ignore[arg-type]
    return found


def _shared(before: Outside, after: Outside, span: _Span) -> Iterator[Holder]:
    new = {path: size for path, size in after.shared.items() if path not in before.shared}
    larger = sum(size - before.shared[path] for path, size in after.shared.items() if path in before.shared)
    if span.often(len(new)):
        size = sum(new.values())
        text = (
            f"{len(after.shared):,} files in /dev/shm are open or mapped, {span.rate(len(new))}, {span.size_rate(size)}"
        )
        yield Holder(kind="shared memory", text=f"{text} (`{_example(new)}`)", count=len(new), size=size)
    elif larger > 0:
        yield Holder(kind="shared memory", text=f"files in /dev/shm grow by {span.size_rate(larger)}", size=larger)
    else:
        size = after.memory.get("shared memory", 0) - before.memory.get("shared memory", 0)
        if size > 0:
            text = f"shared mappings without a file in /dev/shm: {span.size_rate(size)} more"
            yield Holder(kind="shared memory", text=text, size=size)


def _span(first: HeapSnapshot, second: HeapSnapshot) -> _Span:
    seconds = second.seconds - first.seconds
    if first.inside and second.inside and first.inside.steps and second.inside.steps:
        return _Span(max(second.inside.steps - first.inside.steps, 1), seconds)
    return _Span(max(second.steps - first.steps, 1) if first.steps and second.steps else None, seconds)


def items_in_words(items: str) -> str:
    """ "EagerTensors of float32[256,1000]"."""
    kind, _, rest = items.partition(" ")
    return f"{_PLURALS.get(kind, f'{kind} objects' if not rest else f'{kind}s')}" + (f" of {rest}" if rest else "")


def _number(value: float) -> str:
    """ "1", "0.5", "1,200": as many digits as are known."""
    return f"{value:,.0f}" if value >= 9.5 or (value >= 0.95 and abs(value - round(value)) < 0.05) else f"{value:.2g}"


def _example(paths: dict[str, int]) -> str:
    return max(paths, key=lambda path: paths[path])
