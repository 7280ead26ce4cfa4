"""Which objects would the threads of a pipeline use at the same time, though these do not bear it?

Only what is known to go wrong: reading a dictionary, a list or an HDF5 file from several threads is fine."""

from __future__ import annotations

import io
import mmap
import tarfile
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from faultlens.data.pipeline.source_code import chains, counted, handed_out

_MOVES = frozenset({"read", "read1", "readinto", "readline", "readlines", "read_byte", "seek"})
DEPTH = 3  # functions that call each other


class Shared(NamedTuple):
    name: str
    what: str  # it is: "an open file"
    harm: str
    minor: bool = False


class Used(NamedTuple):
    """An object from outside of a function, and what the function does with it."""

    name: str
    value: Any
    methods: frozenset[str]
    function: types.FunctionType


def shared(function: Callable[..., Any]) -> list[Shared]:
    used = list(_used(function, DEPTH))
    if any(hasattr(each.value, "acquire") and hasattr(each.value, "release") for each in used):
        return []  # somebody has thought of it
    found: dict[int, Shared] = {}
    for each in used:
        if (harm := _harm(each)) is not None:
            found.setdefault(id(each.value), harm)
    return list(found.values())


def buffers(function: Callable[..., Any]) -> dict[str, Any]:
    """Arrays from outside of the function that it writes to and returns."""
    return {each.name: each.value for each in _used(function, 0) if _is_handed_out(each)}


def _harm(used: Used) -> Shared | None:
    name, value = used.name, used.value
    if isinstance(value, types.GeneratorType):
        harm = 'a second thread that asks it at the same time gets "ValueError: generator already executing"'
        return Shared(name, "a generator", harm)
    if isinstance(value, (io.IOBase, mmap.mmap)) and used.methods & _MOVES:
        harm = "it has one position for all threads: one reads where another has moved to"
        return Shared(name, "an open file", harm)
    if isinstance(value, tarfile.TarFile) and used.methods & {"extractfile", "next"}:
        return Shared(name, "an open tar archive", "it has one position for all threads")
    if _is_handed_out(used):
        return Shared(name, "an array", "each call writes to it and returns it, while others still use it")
    if (isinstance(value, (dict, list)) or _is_array(value)) and name in counted(used.function):
        what = "a dictionary" if isinstance(value, dict) else "a list" if isinstance(value, list) else "an array"
        harm = "to count in it is not one step; where two threads do it at once, one of them may not count"
        return Shared(name, what, harm, minor=True)
    return None


def _is_handed_out(used: Used) -> bool:
    return _is_array(used.value) and used.name in handed_out(used.function)


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "__array_interface__") and value.ndim > 0


def _used(function: Any, depth: int) -> Iterator[Used]:
    """Also of functions of the same module that it calls."""
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        function = getattr(function, "__call__", None)  # noqa: B004 (an object with such a method)
    owner = getattr(function, "__self__", None)
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return
    names = dict(_outside(function))
    if owner is not None and function.__code__.co_argcount:
        names[function.__code__.co_varnames[0]] = owner
    objects: dict[str, tuple[Any, set[str]]] = {}
    for first, *rest in chains(function.__code__):
        if first not in names:
            continue
        name, value = first, names[first]
        objects.setdefault(name, (value, set()))[1].update(rest[:1])
        # Attributes of its own object, and methods of others, are known without running anything.
        if rest and rest[0] in getattr(value, "__dict__", {}):
            name, value = f"{first}.{rest[0]}", value.__dict__[rest[0]]
            objects.setdefault(name, (value, set()))[1].update(rest[1:2])
        elif rest and isinstance(method := getattr(type(value), rest[0], None), types.FunctionType):
            objects.setdefault(f"{first}.{rest[0]}", (types.MethodType(method, value), set()))
    for name, (value, methods) in objects.items():
        if isinstance(value, types.ModuleType):
            continue
        yield Used(name, value, frozenset(methods), function)
        called = getattr(value, "__func__", value)
        if depth and isinstance(called, types.FunctionType) and called.__globals__ is function.__globals__:
            yield from _used(value, depth - 1)


def _outside(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # not set yet
