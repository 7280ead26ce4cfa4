"""What an op is tortured with: the outline of an input, and all that can be changed in it. Pure.

An outline is changed cheaply; it becomes a call, with its arrays, when it is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from faultlens.oplab.torture.contents import NASTY, PLAIN, Content, array_of, index_like, is_integer, settings_of
from faultlens.oplab.torture.tested import Bounds, OpUnderTest
from faultlens.remedy.arrays import DTYPES, Array
from faultlens.remedy.op_call import Argument, Call, Setting
from faultlens.remedy.op_definition import Input

Shape = tuple[int, ...]
NARROW = (2, 3, 1, 5)
WHOLE = 16
SIDE = 4  # of the first tensors: equal sizes fit where sizes must be equal
SIZES = (0, 1, 2, 3, 5, 7, 16, 17, 64)
HUGE = 1 << 40
MOST_ELEMENTS = 1 << 22
MOST_STRINGS = 100_000
SHAPES: tuple[Shape, ...] = (
    *((), (0,), (1,), (3,), (16,), (17,), (64,), (1, 1), (2, 3), (3, 2), (4, 16), (0, 3), (3, 0), (2, 3, 4)),
    *((1, 0, 2), (2, 2, 2, 2), (1, 2, 1, 2, 1), (1,) * 6, (2, 1) * 3 + (2,), (1,) * 8, (2,) * 8, (0,) * 8),
    *((0, HUGE), (HUGE, 0), (0, 1 << 31), (1, 0, HUGE)),
)
MOST_COMBINATIONS = 700
TOGETHER = (1 << 16, 1 << 32, -1, 0, 2)  # products of which overflow, or are nothing
LISTS = (2, 1, 3)  # tensors in a list


class Slot(NamedTuple):
    """One tensor."""

    shape: Shape
    content: Content = "ones"


class Plan(NamedTuple):
    types: tuple[tuple[str, str], ...]  # attribute and type
    slots: tuple[tuple[Slot, ...], ...]  # for each input; several where it is a list
    settings: tuple[tuple[str, Any], ...] = ()


def why_not(op: OpUnderTest) -> str | None:
    """Why an op cannot be tried."""
    if not op.has_cpu_kernel:
        return "there is no kernel of it for the CPU"
    for each in op.definition.inputs:
        if each.by_reference or each.dtype in ("resource", "variant"):
            return f"its input {each.name} is a {each.dtype or 'reference'}, which cannot be made up"
    for attribute in op.definition.attributes:
        usual = attribute.name in op.told_by_inputs or attribute.has_default
        if not usual and not _choices(op, attribute.name):
            return f"its attribute {attribute.name} is a {attribute.kind}, which cannot be made up"
    if any(not op.dtypes(name) for name in _type_attributes(op)):
        return "no kernel of it takes types that can be made up"
    return None


def call_of(op: OpUnderTest, plan: Plan) -> Call:
    types = dict(plan.types)
    arguments = []
    for each, slots in zip(op.definition.inputs, plan.slots, strict=True):
        dtypes = _dtypes(op, each, types, len(slots))
        arrays = tuple(array_of(dtype, *slot) for dtype, slot in zip(dtypes, slots, strict=True))
        arguments.append(Argument(each.name, arrays, bool(each.number_attribute or each.list_attribute)))
    settings = tuple(
        Setting(name, op.attribute(name).kind, value, op.attribute(name).has_default) for name, value in plan.settings
    )
    return Call(op.name, str(op.definition.function), tuple(arguments), settings, op.definition.library)


def _dtypes(op: OpUnderTest, each: Input, types: dict[str, str], count: int) -> list[str]:
    if each.list_attribute:
        known = op.dtypes(each.list_attribute)
        return [known[index % len(known)] for index in range(count)]
    return [each.dtype or types[str(each.type_attribute)]] * count


def _type_attributes(op: OpUnderTest) -> list[str]:
    named = (name for each in op.definition.inputs for name in (each.type_attribute, each.list_attribute) if name)
    return list(dict.fromkeys(named))


def _choices(op: OpUnderTest, name: str) -> tuple[Any, ...]:
    attribute = op.attribute(name)
    if attribute.kind == "type":
        return op.dtypes(name)
    if attribute.kind == "list(type)":
        some = op.dtypes(name)[:3]
        return ((some[0],), some, ()) if some else ()
    bounds = op.bounds.get(name, Bounds())
    return settings_of(attribute.kind, bounds.allowed, bounds.minimum)


# ------------------------------------------------------------------------------------------- first inputs


def first(op: OpUnderTest) -> Iterator[Plan]:
    """Every combination of ranks, all sizes equal; then shapes that are special."""
    start = plainest(op)
    inputs = len(op.definition.inputs)
    most = next((rank for rank in (5, 4, 3, 2, 1) if (rank + 1) ** inputs <= MOST_COMBINATIONS), 1)
    for content in PLAIN:
        for ranks in product(range(most + 1), repeat=inputs):
            slots = (
                (Slot((SIDE,) * rank, content),) * len(each) for rank, each in zip(ranks, start.slots, strict=True)
            )
            yield start._replace(slots=tuple(slots))
    yield from _narrow(start, inputs)
    for shape in SHAPES:
        yield start._replace(slots=tuple((Slot(shape, "ramp"),) * len(each) for each in start.slots))


def _narrow(start: Plan, inputs: int) -> Iterator[Plan]:
    """Rows of a fixed length are common: pairs of indices, boxes, colours."""
    for ranks in product(range(4), repeat=inputs) if 4**inputs <= MOST_COMBINATIONS else ():
        for i, last in product(range(inputs), NARROW):
            if ranks[i] >= 2:
                shapes = [(SIDE,) * rank for rank in ranks]
                shapes[i] = (*shapes[i][:-1], last)
                for content in ("ramp", "zeros"):
                    slots = ((Slot(s, content),) * len(e) for s, e in zip(shapes, start.slots, strict=True))
                    yield start._replace(slots=tuple(slots))


def scaled(plan: Plan) -> Plan:
    """Blocks of whole cache lines: whoever reads one element more leaves the block."""
    return _each(plan, lambda shape: tuple(WHOLE if size == SIDE else size for size in shape))


def plainest(op: OpUnderTest) -> Plan:
    types = tuple(
        (str(each.type_attribute), op.dtypes(str(each.type_attribute))[0])
        for each in op.definition.inputs
        if each.type_attribute
    )
    slots = tuple((Slot((SIDE,)),) * _count(op, each) for each in op.definition.inputs)
    settings = tuple(
        (each.name, _choices(op, each.name)[0])
        for each in op.definition.attributes
        if not each.has_default and each.name not in op.told_by_inputs and each.name in op.definition.parameters
    )
    return Plan(tuple(dict(types).items()), slots, settings)


def _count(op: OpUnderTest, each: Input) -> int:
    name = each.number_attribute or each.list_attribute
    bounds = op.bounds.get(name) if name else None
    return max(LISTS[0], (bounds and bounds.minimum) or 1) if name else 1


# ------------------------------------------------------------------------------------------ what is changed


def variants(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    """All that differ in one thing, what is likeliest to be deadly first."""
    yield from _types(op, plan)
    yield from _resized(plan)
    yield from _large(plan)
    yield from _contents(op, plan)
    yield from _settings(op, plan)
    yield from _shapes(plan)
    yield from _lists(op, plan)


def _places(plan: Plan) -> Iterator[tuple[int, int]]:
    return ((i, j) for i, slots in enumerate(plan.slots) for j in range(len(slots)))


def _with(plan: Plan, i: int, j: int, slot: Slot) -> Plan:
    slots = plan.slots[i][:j] + (slot,) + plan.slots[i][j + 1 :]
    return plan._replace(slots=plan.slots[:i] + (slots,) + plan.slots[i + 1 :])


def _each(plan: Plan, shape_of: Any) -> Plan:
    return plan._replace(
        slots=tuple(tuple(slot._replace(shape=shape_of(slot.shape)) for slot in slots) for slots in plan.slots)
    )


def _resized(plan: Plan) -> Iterator[Plan]:
    """Sizes that are equal change together; then one alone, which no longer fits the others."""
    sizes = sorted({size for slots in plan.slots for slot in slots for size in slot.shape})
    for size in sizes:
        for target in SIZES:
            if target != size:
                yield _each(plan, lambda shape, a=size, b=target: tuple(b if each == a else each for each in shape))
    for i, j in _places(plan):
        slot = plan.slots[i][j]
        for axis, size in enumerate(slot.shape):
            for target in (*SIZES, size + 1, max(size - 1, 0)):
                if target != size:
                    shape = slot.shape[:axis] + (target,) + slot.shape[axis + 1 :]
                    yield _with(plan, i, j, slot._replace(shape=shape))


def _contents(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    types = dict(plan.types)
    sizes = sorted({size for slots in plan.slots for slot in slots for size in slot.shape})
    for value in TOGETHER:
        yield plan._replace(
            slots=tuple(
                tuple(slot._replace(content=("last", value)) for slot in slots)
                if is_integer(_dtypes(op, each, types, 1)[0])
                else slots
                for each, slots in zip(op.definition.inputs, plan.slots, strict=True)
            )
        )
    for i, j in _places(plan):
        slot = plan.slots[i][j]
        dtype = _dtypes(op, op.definition.inputs[i], types, len(plan.slots[i]))[j]
        if is_integer(dtype):
            for value in index_like(sizes):
                yield _with(plan, i, j, slot._replace(content=("last", value)))
        for content in (*PLAIN, *NASTY):
            if content != slot.content:
                yield _with(plan, i, j, slot._replace(content=content))


def _settings(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    """Also those that have a default."""
    given = dict(plan.settings)
    for each in op.definition.attributes:
        if each.name in op.told_by_inputs or each.name not in op.definition.parameters:
            continue
        for value in _choices(op, each.name):
            if each.name not in given or given[each.name] != value:
                yield plan._replace(settings=tuple({**given, each.name: value}.items()))


def _shapes(plan: Plan) -> Iterator[Plan]:
    for i, j in _places(plan):
        slot = plan.slots[i][j]
        shorter = (slot.shape[1:], slot.shape[:-1]) if slot.shape else ()
        for shape in dict.fromkeys((*shorter, (*slot.shape, 1), (1, *slot.shape), (*slot.shape, SIDE), *SHAPES)):
            if shape != slot.shape:
                yield _with(plan, i, j, slot._replace(shape=shape))
        for axis, other in product(range(len(slot.shape)), repeat=2):
            if axis != other:  # no elements, but a size that no int holds
                shape = tuple(HUGE if k == axis else 0 if k == other else size for k, size in enumerate(slot.shape))
                yield _with(plan, i, j, slot._replace(shape=shape))


def _types(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    for name, dtype in plan.types:
        for other in op.dtypes(name):
            if other != dtype and other in DTYPES:
                yield plan._replace(types=tuple({**dict(plan.types), name: other}.items()))


def _lists(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    for i, each in enumerate(op.definition.inputs):
        if each.number_attribute or each.list_attribute:
            shared = [
                k
                for k, other in enumerate(op.definition.inputs)
                if each.number_attribute and other.number_attribute == each.number_attribute
            ] or [i]
            for count in LISTS:
                slots = tuple((s[:1] * count) if k in shared else s for k, s in enumerate(plan.slots))
                yield plan._replace(slots=slots)


def _large(plan: Plan) -> Iterator[Plan]:
    """What is kept on the stack, or walked through by recursion, shows with many elements only."""
    sizes = {size for slots in plan.slots for slot in slots for size in slot.shape if size > 1}
    for size, target, at in product(sorted(sizes), (1000, 100_000, MOST_ELEMENTS), (0, -1)):
        larger = _each(plan, lambda shape, a=size, b=target, c=at: _one_replaced(shape, a, b, c))
        if is_affordable(larger):
            yield larger


def _one_replaced(shape: Shape, size: int, target: int, at: int) -> Shape:
    """Only the first, or the last, of equal sizes: the others would multiply it."""
    places = [axis for axis, each in enumerate(shape) if each == size]
    return tuple(target if places and axis == places[at] else each for axis, each in enumerate(shape))


def weight(call: Call) -> int:
    """Bytes that its tensors take, about."""
    return sum(array.size * (len(_first(array)) if array.dtype == "string" else 4) for array in call.arrays())


def _first(array: Array) -> bytes:
    value = array.values[0] if array.values else array.fill
    return value if isinstance(value, bytes) else b""


def has_many_strings(call: Call) -> bool:
    """Python makes them one by one."""
    return any(array.dtype == "string" and array.size > MOST_STRINGS for array in call.arrays())


def is_affordable(plan: Plan) -> bool:
    """Making it must not take more memory than trying it."""
    return sum(math.prod(slot.shape) for slots in plan.slots for slot in slots) <= 5 * MOST_ELEMENTS
