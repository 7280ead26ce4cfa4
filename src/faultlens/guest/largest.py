"""What takes the most memory, one by one: tensors, variables and arrays, and containers of them, with their owners."""

from __future__ import annotations

import gc
import os
import time
from types import CodeType, FunctionType
from typing import Any
from weakref import ReferenceType

from .item_sizes import described, first_items, guessed_bytes, items_of, memory_of, total_of
from .owners import Owner, Owners, is_a

LEAST = 1 << 20  # bytes: what is smaller explains nothing
MANY_ITEMS = 10_000  # of which even numbers and strings take some memory
VARIABLE = "ResourceVariable"
MAX_KEPT, MAX_TOLD = 12, 4
_LIGHT = frozenset({str, int, float, bool, type(None), type, FunctionType, ReferenceType, CodeType})
OWNERS_S = 0.06  # of its thread: one question goes through all objects


class Largest:
    """Fed with what the census finds; told afterwards."""

    def __init__(self) -> None:
        self.array_bytes = 0
        self._things: list[tuple[int, Any, Any]] = []  # bytes, the thing, the dictionary or object it was found in
        self._containers: list[tuple[int, Any]] = []
        self._seen: set[int] = set()

    def thing(self, thing: Any, parent: Any = None) -> None:
        """An array (or bytes, or a table), found in a dictionary or an object of the user's."""
        size, whole = memory_of(thing)
        if size >= LEAST and id(whole) not in self._seen:
            self._seen.add(id(whole))
            self.array_bytes += size
            self.weighed(size, thing, parent)

    def weighed(self, size: int, thing: Any, parent: Any = None) -> None:
        """A tensor or variable, or what `thing` has weighed."""
        if size >= LEAST:
            _keep(self._things, (size, thing, parent))

    def container(self, container: Any) -> None:
        many = len(container) >= MANY_ITEMS
        item = next(iter(container.values() if is_a(container, dict) else container))
        if not many and type(item) in _LIGHT:  # nearly all of them
            return
        each = guessed_bytes(item, many)
        if each * len(container) >= LEAST:
            _keep(self._containers, (each * len(container), container))

    def told(self, owners: Owners) -> list[dict[str, Any]]:
        """The largest first. Of what lies in a container that is told, only the container."""
        owners.hidden |= {id(self._things), id(self._containers), *map(id, self._things), *map(id, self._containers)}
        deadline = time.thread_time() + OWNERS_S
        weighed = sorted(((total_of(each), each) for _, each in self._containers), key=_size, reverse=True)
        owners.hidden |= {id(weighed), *map(id, weighed)}
        inner: set[int] = set()
        entries: list[dict[str, Any]] = []
        for size, container in weighed:
            if id(container) not in inner and size >= LEAST and len(entries) < MAX_TOLD:
                inner |= _within(container)
                entries.append(_container(container, size, _owner(owners, container, None, deadline)))
        things = [entry for entry in self._things if id(entry[1]) not in inner][:MAX_TOLD]
        owners.hidden |= {id(things)}
        paths = _keras_paths([thing for _, thing, _ in things if type(thing).__name__ == VARIABLE])
        for size, thing, parent in things:
            owner = paths.get(id(thing)) or _owner(owners, thing, parent, deadline)
            entries.append(_thing(thing, size, owner))
        return sorted(entries, key=lambda entry: -entry["size"])


def _keep(kept: list[Any], entry: Any) -> None:
    if len(kept) < MAX_KEPT or entry[0] > kept[-1][0]:
        kept.append(entry)
        kept.sort(key=_size, reverse=True)
        del kept[MAX_KEPT:]


def _size(entry: Any) -> int:
    return int(entry[0])


def _within(container: Any) -> set[int]:
    """What lies in it, and in tuples, lists and dictionaries in it."""
    items = first_items(container, MANY_ITEMS)
    found = set(map(id, items))
    for item in items:
        if is_a(item, (tuple, list, dict)):
            found.update(map(id, first_items(item, 8)))
    return found


def _owner(owners: Owners, thing: Any, parent: Any, deadline: float) -> Owner | None:
    quick = parent is not None and type(parent) is not dict
    return owners.of(thing, found_in=parent) if quick or time.thread_time() < deadline else owners.named(thing)


def _keras_paths(variables: list[Any]) -> dict[int, Owner]:
    """ "`dense/kernel`": the names that Keras gave them."""
    found: dict[int, Owner] = {}
    for other in gc.get_referrers(*variables) if variables else ():
        names = other if type(other) is dict else _names(other)
        if type(names) is dict and type(names.get("_path")) is str:
            found[id(names.get("_value"))] = f"`{names['_path']}`", None
    return found


def _names(thing: Any) -> Any:
    try:
        return object.__getattribute__(thing, "__dict__")
    except Exception:
        return None


def _thing(thing: Any, size: int, owner: Owner | None) -> dict[str, Any]:
    return {"type": type(thing).__name__, "what": _shape(thing), "size": size, **_told(owner)}


def _container(container: Any, size: int, owner: Owner | None) -> dict[str, Any]:
    items, _ = items_of(container)
    return {
        "type": type(container).__name__, "what": items, "size": size, "length": len(container), **_told(owner)
    }  # fmt: skip


def _told(owner: Owner | None) -> dict[str, Any]:
    return {"owner": owner and owner[0], "file": owner and owner[1] and os.fspath(owner[1])}


def _shape(thing: Any) -> str:
    kind = type(thing).__name__
    if kind == "ndarray":
        return described(thing.dtype, thing.shape)
    if kind in ("EagerTensor", VARIABLE):
        return described(thing.dtype, thing.shape.as_list() if thing.shape.rank is not None else "?")
    return ""
