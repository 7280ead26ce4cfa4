"""What the program's memory is used for, as Python sees it: looked at when it grows or is nearly used up, only then."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections import OrderedDict, defaultdict, deque
from typing import Any

from .item_sizes import items_of, tensor_bytes
from .largest import Largest
from .notes import Notes
from .owners import ARRAYS, Owners, is_own_class
from .tally import Tally, most

SECONDS = 0.5  # of its thread, for counting, which takes 0.1 with TensorFlow loaded; then it stops, and says so
LEAST_LENGTH = 24  # of a container that is remembered
LEAST_GROWN = 8
MAX_NAMES = 100
MAX_WEIGHED, MAX_TOLD, MAX_TYPES, MAX_PLACES = 12, 4, 12, 12
NOTHING, CONTAINER, TENSOR, VARIABLE, OWN, ARRAY = range(6)
_CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)


class Census:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._before: dict[int, int] = {}  # lengths of containers, by their address …
        self._types: dict[str, int] = {}  # … and numbers of objects, when it was last looked
        self._taken = 0
        self._blocks = 0  # of memory that Python had after it

    def take(self, notes: Notes, steps: int | None) -> None:
        """No garbage is collected meanwhile: it would take longer than the look, and run code of the program's."""
        collects = gc.isenabled()
        gc.disable()
        try:
            notes.write({"census": self._look(steps)})
        finally:
            self._blocks = sys.getallocatedblocks()  # with ours
            if collects:
                gc.enable()

    def _look(self, steps: int | None) -> dict[str, Any]:
        started = time.perf_counter()
        blocks = sys.getallocatedblocks() - self._blocks if self._blocks else 0
        objects = gc.get_objects()
        counted = _Counted()  # after it: what is ours is not counted
        owners = Owners({id(objects), id(self._before)})
        for array in owners.arrays:
            counted.largest.thing(array)
        complete = self._count(objects, counted, time.thread_time() + SECONDS)
        for each in [*owners.untracked, *counted.untracked]:
            counted.dictionary(each)
        untracked = [each for each in (*owners.untracked, *counted.untracked) if len(each) >= LEAST_LENGTH]
        counted.lengths.update((id(each), len(each)) for each in untracked)
        objects += untracked
        ours = (untracked, counted.untracked, owners.untracked, owners.arrays, vars(counted), vars(counted.largest))
        owners.hidden |= set(map(id, ours))
        grown = self._grown(objects, counted.lengths)
        del objects
        self._taken += 1
        record: dict[str, Any] = {
            "number": self._taken,
            "time": round(time.monotonic(), 3),
            "steps": steps,
            "complete": complete,
            "types": self._more(counted.types),
            "grown": _told(grown, owners),
            "tensors": [counted.tensors, counted.tensor_bytes],
            "largest": counted.largest.told(owners),
            "arrays": counted.largest.array_bytes,
            "variables": [counted.variables, counted.variable_bytes],
            "variables_made": most(self._tally.variables, MAX_PLACES),
            "traces": most(self._tally.traces, MAX_PLACES),
            "blocks": blocks,
            "malloc": _malloc(),
            "collections": gc.get_stats()[2]["collections"],
            "caches": sum(count for kind, count in counted.types.items() if kind.__name__ == "CacheDataset"),
        }
        self._before = counted.lengths
        record["seconds"] = round(time.perf_counter() - started, 3)
        return record

    def _count(self, objects: list[Any], counted: _Counted, deadline: float) -> bool:
        """False: time ran out."""
        types, lengths, kinds = counted.types, counted.lengths, counted.kinds
        for number, thing in enumerate(objects):
            if not number & 2047 and time.thread_time() > deadline:
                return False
            kind = type(thing)
            types[kind] = types.get(kind, 0) + 1
            what = kinds.get(kind)
            if what is None:
                what = kinds[kind] = _what(kind)
            if what == CONTAINER:
                if len(thing) >= LEAST_LENGTH:
                    lengths[id(thing)] = len(thing)
                if kind is dict:
                    counted.dictionary(thing)
                elif thing:
                    counted.largest.container(thing)
            elif what == TENSOR:
                counted.tensor(thing)
            elif what == VARIABLE:
                counted.variable(thing)
            elif what == OWN:
                counted.values(gc.get_referents(thing), thing)
        return True

    def _more(self, types: dict[type, int]) -> dict[str, int]:
        """How many more objects of which types there are than the last time."""
        before, self._types = self._types, {f"{kind.__module__}.{kind.__qualname__}": n for kind, n in types.items()}
        more = {name: count - before.get(name, 0) for name, count in self._types.items()} if before else {}
        return dict(sorted(more.items(), key=lambda item: -item[1])[:MAX_TYPES])

    def _grown(self, objects: list[Any], lengths: dict[int, int]) -> list[tuple[int, Any]]:
        """Containers with more items than the last time, and how many more."""
        before = self._before
        more = {
            key: length - before[key]
            for key, length in lengths.items()
            if key in before and length - before[key] >= LEAST_GROWN
        }
        return [(more.pop(id(thing)), thing) for thing in objects if id(thing) in more]


class _Counted:
    def __init__(self) -> None:
        self.types: dict[type, int] = {}
        self.lengths: dict[int, int] = {}
        self.tensors = self.tensor_bytes = 0
        self.variables = self.variable_bytes = 0
        self.largest = Largest()
        self.untracked: list[Any] = []  # dictionaries of the user's own objects
        self.kinds: dict[type, int] = {}

    def tensor(self, tensor: Any) -> None:
        size = tensor_bytes(tensor)
        self.tensors += 1
        self.tensor_bytes += size
        self.largest.weighed(size, tensor)

    def variable(self, variable: Any) -> None:
        size = int(variable.shape.num_elements() or 0) * int(variable.dtype.size)
        self.variables += 1
        self.variable_bytes += size
        self.largest.weighed(size, variable)

    def dictionary(self, names: dict[Any, Any]) -> None:
        """It may hold the names of a module or the attributes of an object: then not it is of interest, but they."""
        if not names:
            return
        if len(names) <= MAX_NAMES:
            self.values(list(names.values()), names)
        if len(names) > MAX_NAMES or type(next(iter(names))) is not str:
            self.largest.container(names)

    def values(self, values: list[Any], parent: Any) -> None:
        """Of a dictionary, or what an object of the user's refers to."""
        kinds = self.kinds
        for each in values:
            kind = type(each)
            what = kinds.get(kind)
            if what is None:
                what = kinds[kind] = _what(kind)
            if what == ARRAY:
                self.largest.thing(each, parent)
            elif kind is dict and not gc.is_tracked(each):
                self.untracked.append(each)


def _what(kind: type) -> int:
    if kind in _CONTAINERS:
        return CONTAINER
    if kind.__name__ == "EagerTensor" and kind.__module__.startswith("tensorflow."):
        return TENSOR
    if kind.__name__ == "ResourceVariable":
        return VARIABLE
    if kind.__name__ in ARRAYS:
        return ARRAY
    return OWN if is_own_class(kind) else NOTHING


def _told(grown: list[tuple[int, Any]], owners: Owners) -> list[dict[str, Any]]:
    """Those whose new items take most of the memory."""
    grown.sort(key=lambda pair: -pair[0])
    weighed = []
    for more, container in grown[:MAX_WEIGHED]:
        items, size = items_of(container)
        weighed.append((more * size, more, size, items, container))
    weighed.sort(key=lambda entry: -entry[0])
    del grown[:]
    told = []
    for _, more, size, items, container in weighed[:MAX_TOLD]:
        owner = owners.of(container)
        told.append(
            {
                "type": type(container).__name__,
                "length": len(container),
                "grew": more,
                "items": items,
                "each": size,
                "most": getattr(container, "maxlen", None),
                "owner": owner and owner[0],
                "file": owner and owner[1],
            }
        )
    return told


class _MallocInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def _malloc() -> list[int] | None:
    """Bytes in use and bytes free but kept, of the C library's heap; None before glibc 2.33."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = _MallocInfo
    told = ask()
    return [told.uordblks + told.hblkhd, told.fordblks]
