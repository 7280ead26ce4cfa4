"""All that can be changed in an input of an op, one thing at a time. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from faultlens.custom_op.fuzz.contents import NASTY, PLAIN, TEXTS, Content, index_like, is_integer
from faultlens.custom_op.fuzz.plans import (
    HUGE,
    LISTS,
    MODEST,
    MOST_ELEMENTS,
    SHAPES,
    SIDE,
    SIZES,
    TOGETHER,
    Plan,
    Shape,
    dtypes_of,
    is_affordable,
    places,
    settings,
    with_shapes,
    with_slot,
)
from faultlens.custom_op.fuzz.relations import fits, one_element
from faultlens.custom_op.fuzz.tested import OpUnderTest
from faultlens.op_model.arrays import DTYPES


def variants(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    """All that differ in one thing, what is likeliest to be deadly first."""
    yield from _types(op, plan)
    yield from settings(op, plan)
    yield from _resized(plan)
    yield from one_element(op, plan)
    yield from _contents(op, plan)
    yield from _large(plan)
    yield from _shapes(plan)
    yield from _lists(op, plan)


def _resized(plan: Plan) -> Iterator[Plan]:
    """Sizes that are equal change together; then one alone, which no longer fits the others."""
    sizes = sorted({size for slots in plan.slots for slot in slots for size in slot.shape})
    for size in sizes:
        for target in SIZES:
            if target != size:
                yield with_shapes(
                    plan, lambda shape, a=size, b=target: tuple(b if each == a else each for each in shape)
                )
    for i, j in places(plan):
        slot = plan.slots[i][j]
        for axis, size in enumerate(slot.shape):
            for target in (*SIZES, size + 1, max(size - 1, 0)):
                if target != size:
                    shape = slot.shape[:axis] + (target,) + slot.shape[axis + 1 :]
                    yield with_slot(plan, i, j, slot._replace(shape=shape))


def _contents(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    types = dict(plan.types)
    sizes = sorted({size for slots in plan.slots for slot in slots for size in slot.shape})
    together: list[Content] = [("last", value) for value in TOGETHER]
    for content in (*together, ("exactly", (MODEST // 2, MODEST // 2, -1))):
        yield plan._replace(
            slots=tuple(
                tuple(slot._replace(content=content) for slot in slots)
                if is_integer(dtypes_of(op, each, types, 1)[0])
                else slots
                for each, slots in zip(op.definition.inputs, plan.slots, strict=True)
            )
        )
    for i, j in places(plan):
        slot = plan.slots[i][j]
        dtype = dtypes_of(op, op.definition.inputs[i], types, len(plan.slots[i]))[j]
        if is_integer(dtype):
            for value in index_like(sizes):
                yield with_slot(plan, i, j, slot._replace(content=("last", value)))
        for content in (*PLAIN, *NASTY, *(TEXTS if dtype == "string" else ())):
            if content != slot.content:
                yield with_slot(plan, i, j, slot._replace(content=content))
    yield from fits(op, plan)


def _shapes(plan: Plan) -> Iterator[Plan]:
    for i, j in places(plan):
        slot = plan.slots[i][j]
        shorter = (slot.shape[1:], slot.shape[:-1]) if slot.shape else ()
        for shape in dict.fromkeys((*shorter, (*slot.shape, 1), (1, *slot.shape), (*slot.shape, SIDE), *SHAPES)):
            if shape != slot.shape:
                yield with_slot(plan, i, j, slot._replace(shape=shape))
        for axis, other in product(range(len(slot.shape)), repeat=2):
            if axis != other:  # no elements, but a size that no int holds
                shape = tuple(HUGE if k == axis else 0 if k == other else size for k, size in enumerate(slot.shape))
                yield with_slot(plan, i, j, slot._replace(shape=shape))


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
        larger = with_shapes(plan, lambda shape, a=size, b=target, c=at: _one_replaced(shape, a, b, c))
        if is_affordable(larger):
            yield larger


def _one_replaced(shape: Shape, size: int, target: int, at: int) -> Shape:
    """Only the first, or the last, of equal sizes: the others would multiply it."""
    places = [axis for axis, each in enumerate(shape) if each == size]
    return tuple(target if places and axis == places[at] else each for axis, each in enumerate(shape))
