"""Inputs whose sizes no 32 bits hold, when multiplied: zeros, in pages that take no memory until they are written to.
Pure."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from itertools import combinations

from faultlens.custom_op.fuzz.plans import Plan, Shape, Slot, places, with_shapes, with_slot
from faultlens.op_model.arrays import DTYPES, Array
from faultlens.op_model.op_call import Call

LEAST_BYTES = 256 << 20  # smaller ones are simply made
MOST_BYTES = 64 << 30  # of address space
NEGATIVE, NOTHING = 46_341, 1 << 16  # what their squares are in an int
LONGER = (1 << 31) + 16  # than an int can tell
MOST_OF_INT, MODEST_SIZE = (1 << 31) - 1, 1000
_ZERO = "zeros"


def is_vast(array: Array) -> bool:
    kind = DTYPES.get(array.dtype)
    if kind is None or kind.made != "direct" or not kind.code or array.values is not None or array.fill not in (0, 0.0):
        return False
    return array.size * struct.calcsize(f"<{kind.code}") >= LEAST_BYTES


def overflowing(call: Call) -> str | None:
    """Sizes whose product no 32-bit integer holds, in words: of one tensor, or elements of two."""
    for shape in (array.shape for array in call.arrays()):
        if 0 not in shape and math.prod(shape) > MOST_OF_INT:
            return _product([size for size in shape if size > 1])
    for one, other in combinations((array.size for array in call.arrays()), 2):
        if one * other > MOST_OF_INT:
            return _product([one, other])
    return None


def modest(call: Call) -> Call | None:
    """The same with sizes whose products fit; None where contents would have to change."""

    def smaller(array: Array) -> Array:
        return array._replace(shape=tuple(min(size, MODEST_SIZE) for size in array.shape))

    if any(array.values is not None and max(array.shape, default=0) > MODEST_SIZE for array in call.arrays()):
        return None
    arguments = (each._replace(arrays=tuple(map(smaller, each.arrays))) for each in call.arguments)
    return call._replace(arguments=tuple(arguments))


def _product(sizes: Sequence[int]) -> str:
    return " × ".join(str(size) for size in sizes)


def vast(plan: Plan) -> Iterator[Plan]:
    """Equal sizes grow together, or two of one tensor, and its others become 1 or 0, or one alone; what takes least
    comes first."""
    sizes = sorted({size for slots in plan.slots for slot in slots for size in slot.shape if size > 1})
    made: dict[Plan, None] = {}
    for large in (NEGATIVE, NOTHING):
        for size in sizes:
            grown = with_shapes(plan, lambda shape, a=size, b=large: tuple(b if each == a else each for each in shape))
            made.setdefault(grown)
    for i, j in places(plan):
        shape = plan.slots[i][j].shape
        for large in (NEGATIVE, NOTHING):
            for pair in combinations(range(len(shape)), 2):
                for rest in (0, 1) if len(shape) > 2 else (1,):
                    changed = tuple(large if axis in pair else rest for axis in range(len(shape)))
                    made.setdefault(with_slot(plan, i, j, Slot(changed, plan.slots[i][j].content)))
    for size in sizes:
        made.setdefault(with_shapes(plan, lambda shape, a=size: _longer(shape, a)))
    yield from (_emptied(each) for each in sorted(made, key=_bytes) if _bytes(each) <= MOST_BYTES)


def _longer(shape: Shape, size: int) -> Shape:
    """The first of this size; the others become 1, or the product would be too large."""
    if size not in shape:
        return shape
    at = shape.index(size)
    return tuple(LONGER if axis == at else 1 for axis in range(len(shape)))


def _bytes(plan: Plan) -> int:
    """At most."""
    return sum(8 * math.prod(slot.shape) for slots in plan.slots for slot in slots)


def _emptied(plan: Plan) -> Plan:
    """What is large is all zero."""
    return plan._replace(
        slots=tuple(
            tuple(slot._replace(content=_ZERO) if 8 * math.prod(slot.shape) >= LEAST_BYTES else slot for slot in slots)
            for slots in plan.slots
        )
    )
