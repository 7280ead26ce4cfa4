"""Who owns a container, an array or a tensor: a global, a local of a running function, an attribute, a closure."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Iterator
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any, Optional

from .own_code import is_own

CONTAINERS = (list, dict, set, deque)
ARRAYS = ("EagerTensor", "ndarray", "bytes", "bytearray", "DataFrame", "Series")
MAX_DEPTH = 3  # of containers in each other
MAX_FRAMES = 200
CO_OPTIMIZED = 1

Owner = tuple[str, Optional[str]]


class Owners:
    """Names are looked up once, for all questions. `hidden`: containers of ours, which own nothing."""

    def __init__(self, hidden: set[int]) -> None:
        self.hidden = hidden
        self._modules = {id(names): (name, file) for name, file, names in _modules()}
        self._named: dict[int, Owner] = {}
        self.untracked: list[Any] = []
        self.arrays: list[Any] = []
        for name, value, owner in (*_globals(), *_locals()):
            if id(value) not in self._named and (is_a(value, CONTAINERS) or type(value).__name__ in ARRAYS):
                self._named[id(value)] = f"`{name}` ({owner[0]})", owner[1]
                if is_untracked(value):
                    self.untracked.append(value)
                elif type(value).__name__ in ARRAYS:
                    self.arrays.append(value)

    def named(self, thing: Any) -> Owner | None:
        """Without a search: globals and local variables."""
        return self._named.get(id(thing))

    def of(self, thing: Any, depth: int = 0, found_in: Any = None) -> Owner | None:
        """None: nobody was found. `found_in`: what is known to refer to it, so that nobody else is looked for."""
        if id(thing) in self._named:
            return self._named[id(thing)]
        referrers = [found_in] if found_in is not None else gc.get_referrers(thing)
        referrers = [other for other in referrers if id(other) not in self.hidden]
        self.hidden.add(id(referrers))
        for ask in (self._as_global, self._as_attribute, self._as_closure):
            for other in referrers:
                found = ask(other, thing)
                if found:
                    return found
        if depth < MAX_DEPTH:
            for other in referrers:
                outer = self.of(other, depth + 1) if is_a(other, (*CONTAINERS, tuple)) else None
                if outer:
                    return f"an item of {outer[0]}", outer[1]
        return None

    def _as_global(self, other: Any, thing: Any) -> Owner | None:
        if type(other) is not dict or id(other) not in self._modules:
            return None
        module, file = self._modules[id(other)]
        name = _key_of(other, thing)
        return (f"`{name}` (global of {os.path.basename(file) if is_own(file) else module})", file) if name else None

    def _as_attribute(self, other: Any, thing: Any) -> Owner | None:
        """Of an object or a class; the name is told where it is known, which it is not with __slots__."""
        names: Any = None
        if type(other) is dict:
            names = other
            other = next((each for each in gc.get_referrers(other) if _has_names(each, names)), None)
        if other is None or is_a(other, (*CONTAINERS, tuple, FrameType, CellType, ModuleType, FunctionType)):
            return None
        if names is None:
            names = _names_of(other) or {}
        name = _key_of(names, thing)
        kind = other if is_a(other, type) else type(other)
        if name is None and not is_own_class(kind):
            return None
        whose = f"class {kind.__name__}" if is_a(other, type) else f"a {kind.__name__} object"
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return (f"`.{name}` of {whose}" if name else f"an attribute of {whose}"), file

    def _as_closure(self, other: Any, _: Any) -> Owner | None:
        if type(other) is not CellType:
            return None
        for cells in gc.get_referrers(other):
            for function in gc.get_referrers(cells) if type(cells) is tuple else ():
                if type(function) is FunctionType and function.__closure__ is cells:
                    code = function.__code__
                    name = code.co_freevars[[id(cell) for cell in cells or ()].index(id(other))]
                    file = os.path.basename(code.co_filename)
                    return f"`{name}` (variable around {code.co_name}() in {file})", code.co_filename
        return None


def is_a(thing: Any, kinds: Any) -> bool:
    """As isinstance(), which runs code of objects that stand in for others."""
    return issubclass(type(thing), kinds)


def is_untracked(thing: Any) -> bool:
    """A dictionary that the garbage collector does not know of: nothing in it could form a cycle."""
    return type(thing) is dict and not gc.is_tracked(thing)


def is_own_class(kind: type) -> bool:
    """Of the user's."""
    name = type.__getattribute__(kind, "__module__")
    module = sys.modules.get(name) if type(name) is str else None
    if module is None or not is_a(module, ModuleType):
        return False
    file = object.__getattribute__(module, "__dict__").get("__file__")
    return name == "__main__" or (type(file) is str and is_own(file))


def _modules() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, module in list(sys.modules.items()):
        if is_a(module, ModuleType):
            names = object.__getattribute__(module, "__dict__")  # some modules load themselves when asked for more
            file = names.get("__file__")
            yield name, file if type(file) is str else "", names


def _globals() -> Iterator[tuple[str, Any, Owner]]:
    """Of the user's own modules."""
    for name, file, names in _modules():
        if name == "__main__" or (file and is_own(file)):
            for each, value in list(names.items()):
                yield each, value, (f"global of {os.path.basename(file) or name}", file or None)


def _locals() -> Iterator[tuple[str, Any, Owner]]:
    """Of the user's own functions that are running, on all threads."""
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        for _ in range(MAX_FRAMES):
            if frame is None:
                break
            code = frame.f_code
            if code.co_flags & CO_OPTIMIZED and is_own(code.co_filename):
                owner = f"local of {code.co_name}() in {os.path.basename(code.co_filename)}", code.co_filename
                yield from ((name, value, owner) for name, value in _values(frame))
            frame = frame.f_back


def _values(frame: FrameType) -> list[tuple[str, Any]]:
    """Until Python 3.12 the frame keeps what it was asked for, and everything in it alive: it is emptied again, unless
    the program holds it too."""
    names = frame.f_locals
    values = list(names.items())
    if type(names) is dict and sys.getrefcount(names) <= 3:
        names.clear()
    return values


def _has_names(thing: Any, names: dict[str, Any]) -> bool:
    """Whether the dictionary holds the attributes of this object or class."""
    if is_a(thing, type):
        return any(each is names for each in gc.get_referents(thing))
    return _names_of(thing) is names


def _names_of(thing: Any) -> Any:
    try:
        return object.__getattribute__(thing, "__dict__")
    except Exception:
        return None


def _key_of(names: Any, value: Any) -> str | None:
    return next((str(key) for key, each in list(names.items()) if each is value), None)
