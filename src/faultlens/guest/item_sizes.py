"""What a container holds, and how many bytes each item takes, judged by the last few."""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from .owners import is_a

SAMPLED = 8
GUESSED = 4
MAX_VISITED = 400
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, FrameType)  # not an item's own


def items_of(container: Any) -> tuple[str, int]:
    """ "EagerTensor float32[256,1000]", and the bytes of one. What all items share is not counted: the last four are
    compared with the last eight."""
    items = _last(container)
    if not items:
        return "", 0
    names = Counter(map(_name, items))
    half = len(items) // 2
    if not half:
        return names.most_common(1)[0][0], _size(items)
    return names.most_common(1)[0][0], max(_size(items) - _size(items[:half]), 0) // (len(items) - half)


def total_of(container: Any) -> int:
    """All items of a short one; of a long one, as many as it has of those that were looked at."""
    if len(container) <= SAMPLED:
        return _size(_last(container))
    return items_of(container)[1] * len(container)


def memory_of(thing: Any) -> tuple[int, Any]:
    """The bytes that an array (or bytes, or a table of pandas) keeps in memory, and the object that has them: of a
    view the array behind it. 0 for a file that is mapped, and for anything else."""
    kind = type(thing).__name__
    if kind == "ndarray":
        whole = thing
        while type(whole).__name__ == "ndarray" and whole.base is not None:
            whole = whole.base
        return (sys.getsizeof(whole) if type(whole).__name__ in ("ndarray", "bytes", "bytearray") else 0), whole
    if kind in ("bytes", "bytearray"):
        return sys.getsizeof(thing), thing
    return (_size([thing]) if kind in ("DataFrame", "Series") else 0), thing


def guessed_bytes(item: Any, of_many: bool, depth: int = 2) -> int:
    """Quickly: of an item of a container. Numbers and strings count where there are many."""
    if type(item).__name__ == "EagerTensor":
        return tensor_bytes(item)
    size = memory_of(item)[0]
    if not size and depth and is_a(item, (tuple, list, dict)):
        size = sum(guessed_bytes(each, of_many, depth - 1) for each in first_items(item, GUESSED))
    return size or (_own_size(item) if of_many else 0)


def first_items(container: Any, number: int) -> list[Any]:
    values = container.values() if is_a(container, dict) else container
    return list(islice(values, number))


def tensor_bytes(tensor: Any) -> int:
    return int(tensor._num_elements()) * max(int(tensor.dtype.size), 0)


def described(dtype: Any, shape: Any) -> str:
    """ "float32[256,1000]"."""
    return f"{getattr(dtype, 'name', dtype)}[{','.join(map(str, shape))}]"


def _last(container: Any) -> list[Any]:
    if is_a(container, dict):
        return list(islice(reversed(container.values()), SAMPLED))
    if is_a(container, (list, deque)):
        return list(islice(reversed(container), SAMPLED))
    return list(islice(container, SAMPLED))


def _name(item: Any) -> str:
    kind = type(item)
    if kind.__name__ in ("EagerTensor", "ndarray"):
        shape = item._shape_tuple() if kind.__name__ == "EagerTensor" else item.shape
        return f"{kind.__name__} {described(item.dtype, shape)}"
    return str(kind.__name__)


def _size(items: list[Any]) -> int:
    """Of the items and what they refer to, each counted once."""
    total, seen, waiting = 0, set(map(id, items)), list(items)
    for _ in range(MAX_VISITED):
        if not waiting:
            break
        thing = waiting.pop()
        total += _own_size(thing)
        if type(thing).__name__ == "ndarray" and thing.base is not None:
            followed = [thing.base]  # what a view keeps alive
        else:
            followed = gc.get_referents(thing) if type(thing).__name__ != "EagerTensor" else []
        for other in followed:
            if id(other) not in seen and not is_a(other, _SHARED):
                seen.add(id(other))
                waiting.append(other)
    return total


def _own_size(thing: Any) -> int:
    if type(thing).__name__ == "EagerTensor":
        return tensor_bytes(thing)
    if type(type(thing).__sizeof__) is FunctionType:  # code of others, that may take long: tables of pandas
        return object.__sizeof__(thing)
    return sys.getsizeof(thing)  # an array that owns its memory counts it
