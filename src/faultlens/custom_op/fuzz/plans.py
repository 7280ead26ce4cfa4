"""What an op is fuzzed with: the outline of an input, and all that can be changed in it. Pure.

An outline is changed cheaply; it becomes a call, with its arrays, when it is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from faultlens.custom_op.fuzz import fitting
from faultlens.custom_op.fuzz.contents import MOST_VALUES, PLAIN, Content, array_of, settings_of
from faultlens.custom_op.fuzz.tested import Bounds, OpUnderTest
from faultlens.op_model.arrays import Array
from faultlens.op_model.op_call import Argument, Call, Setting
from faultlens.op_model.op_definition import Input

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
COMMON_RANK = 3
MOST_COMBINATIONS = 300
TOGETHER = (1 << 16, 1 << 32, -1, 0, 2)  # products of which overflow, or are nothing
MODEST = 100_000
LISTS = (2, 1, 3)  # tensors in a list


class Fit(NamedTuple):
    """Integers that fit a size of an input, or a number."""

    pattern: str
    i: int = 0
    axis: int = 0
    size: int | None = None


class Slot(NamedTuple):
    """One tensor."""

    shape: Shape
    content: Content | Fit = "ones"


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
        if not usual and not choices(op, attribute.name):
            return f"its attribute {attribute.name} is a {attribute.kind}, which cannot be made up"
    if any(not op.dtypes(name) for name in _type_attributes(op)):
        return "no kernel of it takes types that can be made up"
    return None


def call_of(op: OpUnderTest, plan: Plan) -> Call:
    types = dict(plan.types)
    arguments = []
    for each, slots in zip(op.definition.inputs, plan.slots, strict=True):
        dtypes = dtypes_of(op, each, types, len(slots))
        arrays = tuple(
            array_of(dtype, slot.shape, _found(plan, slot)) for dtype, slot in zip(dtypes, slots, strict=True)
        )
        arguments.append(Argument(each.name, arrays, bool(each.number_attribute or each.list_attribute)))
    settings = tuple(
        Setting(name, op.attribute(name).kind, value, op.attribute(name).has_default) for name, value in plan.settings
    )
    return Call(op.name, str(op.definition.function), tuple(arguments), settings, op.definition.library)


def _found(plan: Plan, slot: Slot) -> Content:
    """Contents that fit another input, for the size that it has."""
    if not isinstance(slot.content, Fit):
        return slot.content
    return "exactly", fitted(plan, slot)


def fitted(plan: Plan, slot: Slot) -> tuple[int, ...]:
    fit, count = slot.content, math.prod(slot.shape)
    assert isinstance(fit, Fit)
    other = plan.slots[fit.i][0].shape if fit.i < len(plan.slots) else ()
    n = fit.size if fit.size is not None else other[fit.axis] if fit.axis < len(other) else 1
    return fitting.values(fit.pattern, min(count, MOST_VALUES), slot.shape[-1] if slot.shape else 1, n)


def dtypes_of(op: OpUnderTest, each: Input, types: dict[str, str], count: int) -> list[str]:
    if each.list_attribute:
        known = op.dtypes(each.list_attribute)
        return [known[index % len(known)] for index in range(count)]
    return [each.dtype or types[str(each.type_attribute)]] * count


def _type_attributes(op: OpUnderTest) -> list[str]:
    named = (name for each in op.definition.inputs for name in (each.type_attribute, each.list_attribute) if name)
    return list(dict.fromkeys(named))


def choices(op: OpUnderTest, name: str) -> tuple[Any, ...]:
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
    """Every combination of ranks that are common, all sizes equal."""
    start = plainest(op)
    inputs = len(op.definition.inputs)
    most = next((rank for rank in (COMMON_RANK, 2, 1) if (rank + 1) ** inputs <= MOST_COMBINATIONS), 1)
    for content in PLAIN:
        for ranks in sorted(product(range(most + 1), repeat=inputs), key=sum):
            yield _of_ranks(start, ranks, content)


def special(op: OpUnderTest) -> Iterator[Plan]:
    """The same shape for all inputs: ranks up to 8, empty ones, sizes that no int holds. Then one of a high rank."""
    start = plainest(op)
    for shape in SHAPES:
        yield start._replace(slots=tuple((Slot(shape, "ramp"),) * len(each) for each in start.slots))
    inputs = len(op.definition.inputs)
    for i, high, others in product(range(inputs), (4, 5), range(3)):
        yield _of_ranks(start, tuple(high if k == i else others for k in range(inputs)), "ramp")


def _of_ranks(start: Plan, ranks: tuple[int, ...], content: str) -> Plan:
    slots = ((Slot((SIDE,) * rank, content),) * len(each) for rank, each in zip(ranks, start.slots, strict=True))
    return start._replace(slots=tuple(slots))


def narrow(op: OpUnderTest) -> Iterator[Plan]:
    """Rows of a fixed length are common: pairs of indices, boxes, colours."""
    start, inputs = plainest(op), len(op.definition.inputs)
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
    return with_shapes(plan, lambda shape: tuple(WHOLE if size == SIDE else size for size in shape))


def plainest(op: OpUnderTest) -> Plan:
    types = tuple(
        (str(each.type_attribute), op.dtypes(str(each.type_attribute))[0])
        for each in op.definition.inputs
        if each.type_attribute
    )
    slots = tuple((Slot((SIDE,)),) * _count(op, each) for each in op.definition.inputs)
    settings = tuple(
        (each.name, choices(op, each.name)[0])
        for each in op.definition.attributes
        if not each.has_default and each.name not in op.told_by_inputs and each.name in op.definition.parameters
    )
    return Plan(tuple(dict(types).items()), slots, settings)


def _count(op: OpUnderTest, each: Input) -> int:
    name = each.number_attribute or each.list_attribute
    bounds = op.bounds.get(name) if name else None
    return max(LISTS[0], (bounds and bounds.minimum) or 1) if name else 1


# ------------------------------------------------------------------------------------------ changing one


def places(plan: Plan) -> Iterator[tuple[int, int]]:
    return ((i, j) for i, slots in enumerate(plan.slots) for j in range(len(slots)))


def with_slot(plan: Plan, i: int, j: int, slot: Slot) -> Plan:
    slots = plan.slots[i][:j] + (slot,) + plan.slots[i][j + 1 :]
    return plan._replace(slots=plan.slots[:i] + (slots,) + plan.slots[i + 1 :])


def with_shapes(plan: Plan, shape_of: Any) -> Plan:
    return plan._replace(
        slots=tuple(tuple(slot._replace(shape=shape_of(slot.shape)) for slot in slots) for slots in plan.slots)
    )


def settings(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    """Also those that have a default."""
    given = dict(plan.settings)
    for each in op.definition.attributes:
        if each.name in op.told_by_inputs or each.name not in op.definition.parameters:
            continue
        for value in choices(op, each.name):
            if each.name not in given or given[each.name] != value:
                yield plan._replace(settings=tuple({**given, each.name: value}.items()))


def weight(call: Call) -> int:
    """Bytes that its tensors take, about."""
    return sum(array.size * (len(_first(array)) if array.dtype == "string" else 4) for array in call.arrays())


def largest_number(call: Call) -> int:
    """That may be a size of what an op allocates."""
    numbers = (value for array in call.arrays() for value in (array.values or (array.fill,)) if isinstance(value, int))
    return max((number for number in numbers if number <= MODEST), default=0)


def _first(array: Array) -> bytes:
    value = array.values[0] if array.values else array.fill
    return value if isinstance(value, bytes) else b""


def has_many_strings(call: Call) -> bool:
    """Python makes them one by one."""
    return any(array.dtype == "string" and array.size > MOST_STRINGS for array in call.arrays())


def is_affordable(plan: Plan) -> bool:
    """Making it must not take more memory than trying it."""
    return sum(math.prod(slot.shape) for slots in plan.slots for slot in slots) <= 5 * MOST_ELEMENTS
