from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import size_told, speaks_of
from faultlens.custom_op.check.dimensions import forgotten
from faultlens.custom_op.check.extents import dimension, extent, related
from faultlens.custom_op.check.index_range import loops_in
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.symbols import Symbol, constant, is_tensor, linear, origins
from faultlens.custom_op.check.interpret.unit import Followed
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding

_SIZES = ("dim", "numel", "bytes", "dims2")


class UnrelatedSizes(Rule):
    """A loop that runs over one tensor and reads or writes another runs beyond the end of it where the caller gives
    the second a smaller size. Reading takes what lies behind; writing damages the heap, and the process dies later, in
    code that is not at fault. The sizes must be compared before:

    ```cpp
    OP_REQUIRES(ctx, x.NumElements() == w.NumElements(),
                errors::InvalidArgument("x and w must have the same number of elements"));
    ```
    """

    code = "OP103"
    slug = "unrelated-sizes"
    severity = "error"
    headline = "a tensor is indexed by the size of another, and nothing has compared the two"

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        for event in good(followed.of("index")):
            if event.on[0] in ("input", "output", "temp") and not isinstance(event.on[1], tuple):
                yield from self._index(event, followed)
        for event in good(followed.of("copy")):
            if event.detail != "text":
                yield from self._copy(event, followed)

    def _index(self, event: Event, followed: Followed) -> Iterator[OpFinding]:
        place = event.place
        if (pair := forgotten(event)) is not None:
            yield self._forgotten(event, followed, *pair)
            return
        for at, index in enumerate(event.by):
            counters = loops_in(index)
            if not counters or any(speaks_of(place, counter) for counter in counters) or _is_computed(index):
                continue
            many = len(event.by) > 1
            size = dimension(place, event.on, at) if many else extent(place, event.on)
            if size is None:
                continue
            own = _tensors_of(size) | {event.on}
            for counter in counters:
                limit = counter[4]
                if limit is None:
                    continue
                others = _tensors_of(limit)
                if not others or others & own or not _only_sizes(limit):
                    continue
                if not related(place, others, own):
                    yield self._finding(event, followed, next(iter(sorted(others, key=repr))))
                    return
            count = _fixed_count(index)
            if count and event.on[0] == "input" and not size_told(place, event.on):
                yield self._too_small(event, followed, count)
                return

    def _copy(self, event: Event, followed: Followed) -> Iterator[OpFinding]:
        source, size = event.by[0], event.by[1]
        others = _tensors_of(size)
        if not others or not _only_sizes(size):
            return
        for side in (event.on, source):
            if side[0] != "ptr" or not is_tensor(side[1]):
                continue
            buffer = side[1]
            known = extent(event.place, buffer)
            own = (_tensors_of(known) if known else set()) | {buffer}
            if known is None or others & own or related(event.place, others, own):
                continue
            yield self._finding(event, followed, next(iter(sorted(others, key=repr))), buffer)
            return

    def _finding(self, event: Event, followed: Followed, other: Symbol, buffer: Symbol | None = None) -> OpFinding:
        target = buffer or event.on
        first, second = tensor_named(target, followed.op), tensor_named(other, followed.op)
        verb = "written" if event.write or (event.kind == "copy" and buffer == event.on[1]) else "read"
        code = (
            f"OP_REQUIRES({context_of(event.node)}, {_call(target)}.NumElements() == {_call(other)}.NumElements(),\n"
            '            errors::InvalidArgument("the sizes do not fit"));'
        )
        return self.found(
            event,
            f"{first} is {verb} as far as {second} is long, and nothing has compared their sizes",
            "compare the sizes first",
            code,
            followed=followed,
        )

    def _forgotten(self, event: Event, followed: Followed, limit: Symbol, own: Symbol) -> OpFinding:
        sizes = [f"dimension {dim[2][1]} of {tensor_named(dim[1], followed.op)}" for dim in (own, limit)]
        calls = [f"{_call(dim[1])}.dim_size({dim[2][1]})" for dim in (own, limit)]
        return self.found(
            event,
            f"{sizes[0]} is read as far as {sizes[1]} is long, and the checks compare other dimensions",
            "compare these two",
            f"OP_REQUIRES({context_of(event.node)}, {calls[0]} == {calls[1]},\n"
            '            errors::InvalidArgument("the sizes do not fit"));',
            followed=followed,
        )

    def _too_small(self, event: Event, followed: Followed, count: int) -> OpFinding:
        name = tensor_named(event.on, followed.op)
        return self.found(
            event,
            f"{count} elements of {name} are read, and nothing has checked that it has as many",
            "check the size first",
            f"OP_REQUIRES({context_of(event.node)}, {_call(event.on)}.NumElements() >= {count},\n"
            f'            errors::InvalidArgument("at least {count} elements are needed"));',
            followed=followed,
        )


def _fixed_count(index: Symbol) -> int:
    """for (i = 0; i < 3; ++i) x(i)"""
    count = constant(index[4]) if index[0] == "loop" and index[4] else None
    return count or 0


def _call(tensor: Symbol) -> str:
    return f"ctx->input({tensor[1]})" if tensor[0] == "input" else "output"


def _tensors_of(symbol: Symbol) -> set[Symbol]:
    return {part[1] for part in origins(symbol) if part[0] in _SIZES and is_tensor(part[1])}


def _only_sizes(symbol: Symbol) -> bool:
    """A limit that also comes from elsewhere may be smaller."""
    return all(
        atom == () or atom[0] in _SIZES or (atom[0] == "product" and all(each[0] in _SIZES for each in atom[1:]))
        for atom in linear(symbol)
    ) or (
        symbol[0] in ("bytes", "elements", "*")
        and all(
            part[0] in (*_SIZES, "*", "+", "-", "int", "sizeof", "elements", "input", "output", "temp")
            for part in origins(symbol)
        )
    )


def _is_computed(index: Symbol) -> bool:
    """What a division or a function makes of the counter may stay small."""
    return any(
        part[0] in ("/", "%", "min", "max", "clamp", "call", "?:", ">>", "&", "elem")
        for part in origins(index)
        if part[0] != "loop"
    )
