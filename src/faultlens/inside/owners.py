"""Who owns a container: a global, a local variable of a running function, an attribute, a closure."""

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
MAX_DEPTH = 3  # of containers in each other
MAX_FRAMES = 200
CO_OPTIMIZED = 1

Owner = tuple[str, Optional[str]]  # noqa: UP045 (evaluated by Python 3.9) — in words, and the file


class Owners:
    """Names are looked up once, for all questions. `hidden`: containers of ours, which own nothing."""

    def __init__(self, hidden: set[int]) -> None:
        self.hidden = hidden
        self._modules = {id(names): (name, file) for name, file, names in _modules()}
        self._named: dict[int, Owner] = {}
        self.untracked: list[Any] = []
        for name, value, owner in (*_globals(), *_locals()):
            if isinstance(value, CONTAINERS) and id(value) not in self._named:
                self._named[id(value)] = f"`{name}` ({owner[0]})", owner[1]
                if is_untracked(value):
                    self.untracked.append(value)

    def of(self, thing: Any, depth: int = 0) -> Owner | None:
        """None: nobody was found."""
        if id(thing) in self._named:
            return self._named[id(thing)]
        referrers = [other for other in gc.get_referrers(thing) if id(other) not in self.hidden]
        self.hidden.add(id(referrers))
        for ask in (self._as_global, self._as_attribute, self._as_closure):
            for other in referrers:
                found = ask(other, thing)
                if found:
                    return found
        if depth < MAX_DEPTH:
            for other in referrers:
                outer = self.of(other, depth + 1) if isinstance(other, (*CONTAINERS, tuple)) else None
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
        if type(other) is dict:
            holders = [each for each in gc.get_referrers(other) if getattr(each, "__dict__", None) is other]
            other = holders[0] if holders else None
        if other is None or isinstance(other, (*CONTAINERS, tuple, FrameType, CellType, ModuleType, FunctionType)):
            return None
        attributes = gc.get_referents(other)
        names = next((each for each in attributes if type(each) is dict and _key_of(each, thing)), None)
        name = _key_of(names if names is not None else getattr(other, "__dict__", {}), thing)
        kind = other if isinstance(other, type) else type(other)
        whose = f"class {kind.__name__}" if isinstance(other, type) else f"a {kind.__name__} object"
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


def is_untracked(thing: Any) -> bool:
    """A dictionary that the garbage collector does not know of: nothing in it could form a cycle."""
    return type(thing) is dict and not gc.is_tracked(thing)


def is_own_class(kind: type) -> bool:
    """Of the user's."""
    module = sys.modules.get(kind.__module__) if isinstance(kind.__module__, str) else None
    if not isinstance(module, ModuleType):
        return False
    file = object.__getattribute__(module, "__dict__").get("__file__")
    return kind.__module__ == "__main__" or (isinstance(file, str) and is_own(file))


def _modules() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            names = object.__getattribute__(module, "__dict__")  # some modules load themselves when asked for more
            file = names.get("__file__")
            yield name, file if isinstance(file, str) else "", names


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


def _key_of(names: Any, value: Any) -> str | None:
    return next((str(key) for key, each in list(names.items()) if each is value), None)
