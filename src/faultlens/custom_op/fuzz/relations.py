"""Which inputs may an op accept whose inputs must fit each other, and what differs from those in one element? Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from faultlens.custom_op.fuzz import fitting, hints
from faultlens.custom_op.fuzz.contents import MOST_VALUES, PLAIN, TEXTS, is_integer
from faultlens.custom_op.fuzz.plans import (
    NARROW,
    SIDE,
    Fit,
    Plan,
    Shape,
    Slot,
    call_of,
    dtypes_of,
    places,
    settings,
    with_slot,
)
from faultlens.custom_op.fuzz.tested import OpUnderTest

MOST_CHANGED = 64  # elements of a tensor, one of which is changed


def ways(op: OpUnderTest, plan: Plan, words: str) -> Iterator[Plan]:
    """What may be accepted instead of an input that was refused with these words."""
    about = hints.about(words, [each.name for each in op.definition.inputs])
    for i in about:
        for j, slot in enumerate(plan.slots[i]):
            for rank in hints.ranks(words):
                yield with_slot(plan, i, j, slot._replace(shape=(SIDE,) * rank))
            for number, axis in product(hints.numbers(words), range(len(slot.shape))):
                for size in (number, number + 1, number - 1):
                    yield with_slot(
                        plan, i, j, slot._replace(shape=(*slot.shape[:axis], size, *slot.shape[axis + 1 :]))
                    )
    yield from fits(op, plan)
    types = dict(plan.types)
    for i, j in sorted(places(plan), key=lambda place: place[0] not in about):
        slot = plan.slots[i][j]
        dtype = dtypes_of(op, op.definition.inputs[i], types, len(plan.slots[i]))[j]
        shorter = (slot.shape[1:], slot.shape[:-1]) if slot.shape else ()
        for shape in (*shorter, (*slot.shape, SIDE), (1, *slot.shape), *_with_other_sizes(slot.shape)):
            yield with_slot(plan, i, j, slot._replace(shape=shape))
        for content in (*PLAIN, "tiny", *(TEXTS if dtype == "string" else ())):
            yield with_slot(plan, i, j, slot._replace(content=content))
        for number in hints.numbers(words) if is_integer(dtype) else ():
            yield with_slot(plan, i, j, slot._replace(content=("exactly", (number,))))
    yield from settings(op, plan)


def _with_other_sizes(shape: Shape) -> Iterator[Shape]:
    for axis in reversed(range(len(shape))):
        for size in (*NARROW, SIDE - 1, SIDE + 1, 2 * SIDE, SIDE * SIDE):
            yield (*shape[:axis], size, *shape[axis + 1 :])


def fits(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    """Integers that fit the sizes of other inputs, or numbers among the attributes."""
    integers = list(_integers(op, plan))
    numbers = {value for _, value in plan.settings if isinstance(value, int) and 0 < value < MOST_VALUES}
    numbers |= {each.default for each in op.definition.attributes if isinstance(each.default, int)}
    for i, j in integers:
        slot = plan.slots[i][j]
        sizes = {
            other[0].shape[axis]: Fit("", k, axis)
            for k, other in reversed(list(enumerate(plan.slots)))
            if other and k != i
            for axis in reversed(range(len(other[0].shape)))
        }
        sizes = sizes or {size: Fit("", i, axis) for axis, size in enumerate(slot.shape)}
        fits = [*sizes.values(), *(Fit("", size=number) for number in numbers if 0 < number < MOST_VALUES)]
        for fit, pattern in product(fits, fitting.PATTERNS):
            yield with_slot(plan, i, j, slot._replace(content=fit._replace(pattern=pattern)))
    if len(integers) > 1:
        floats = [(i, 0) for i in range(len(plan.slots)) if (i, 0) not in integers and plan.slots[i]] or [(0, 0)]
        for (k, _), pattern in product(floats, fitting.PATTERNS):
            changed = plan
            for i, j in integers:
                changed = with_slot(changed, i, j, changed.slots[i][j]._replace(content=Fit(pattern, k)))
            yield changed


def _integers(op: OpUnderTest, plan: Plan) -> Iterator[tuple[int, int]]:
    types = dict(plan.types)
    for i, j in places(plan):
        if is_integer(dtypes_of(op, op.definition.inputs[i], types, len(plan.slots[i]))[j]):
            yield i, j


def one_element(op: OpUnderTest, plan: Plan) -> Iterator[Plan]:
    """One element of many that fit is wrong; one more or less of them."""
    call = call_of(op, plan)
    for i, j in _integers(op, plan):
        slot, array = plan.slots[i][j], call.arguments[i].arrays[j]
        if not 0 < array.size <= MOST_CHANGED:
            continue
        given = tuple(int(each) for each in array.values or (array.fill,) * array.size)  # type: ignore[arg-type]
        sizes = [size for k, slots in enumerate(plan.slots) if k != i for each in slots for size in each.shape]
        for changed in fitting.changed(given, max(sizes, default=max(given))):
            yield with_slot(plan, i, j, slot._replace(content=("exactly", changed)))
        if len(slot.shape) == 1:
            for fewer in (given[1:], given[:-1], (*given, given[-1]), (given[0], *given)):
                yield with_slot(plan, i, j, Slot((len(fewer),), ("exactly", fewer)))
