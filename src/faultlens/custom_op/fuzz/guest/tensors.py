"""Makes the tensors of an input. Runs in the Python of the user's programs, from 3.9 on."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import mmap
import os
import resource
import struct
from typing import Any, Iterator

import numpy as np
import tensorflow as tf

VIA = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}
NO_RESERVE = 0x4000  # MAP_NORESERVE, which Python tells from 3.13 on
OFFSET = 4  # bytes by which an unaligned tensor is off


class CannotMakeError(Exception):
    """There is no such tensor."""


def array_of(spec: dict[str, Any]) -> Any:
    """As numpy has it."""
    dtype, shape = spec["dtype"], tuple(spec["shape"])
    try:
        if dtype == "string":
            if spec["values"] is None:
                return np.full(shape, spec["fill"].encode("latin-1"), object)
            array = np.empty(len(spec["values"]), object)
            array[:] = [each.encode("latin-1") for each in spec["values"]]
            return array.reshape(shape)
        kind = tf.as_dtype(VIA.get(dtype, dtype)).as_numpy_dtype
        if spec["values"] is not None:
            values = [complex(*each) if isinstance(each, list) else each for each in spec["values"]]
            return np.array(values, kind).reshape(shape)
        if spec["fill"] == "random":
            return random_array(shape, kind)
        fill = complex(*spec["fill"]) if isinstance(spec["fill"], list) else spec["fill"]
        return np.full(shape, fill, kind)
    except (ValueError, OverflowError, MemoryError, TypeError) as error:
        raise CannotMakeError(str(error)) from error


def random_array(shape: tuple[int, ...], kind: Any) -> Any:
    source = np.random.default_rng(1)
    if np.issubdtype(kind, np.integer):
        return source.integers(0, 100, shape).astype(kind)
    if kind == np.bool_:
        return source.integers(0, 2, shape).astype(kind)
    return source.random(shape).astype(kind)


def tensor_of(spec: dict[str, Any], aligned: bool = True) -> Any:
    if spec.get("vast"):
        return vast(tuple(spec["shape"]), spec["dtype"])
    array = array_of(spec)
    if not aligned and array.dtype != object and array.size:
        return unaligned(array)
    try:
        tensor = tf.constant(array)
    except (ValueError, TypeError, tf.errors.OpError) as error:
        raise CannotMakeError(str(error)) from error
    # NumPy's memory may be the tensor's: only a copy lies in memory from TensorFlow, as that of other ops does.
    copied = tf.raw_ops.GatherV2(params=tf.expand_dims(tensor, 0), indices=[0], axis=0)
    tensor = tf.reshape(copied, tensor.shape)
    return tf.bitcast(tensor, spec["dtype"]) if spec["dtype"] in VIA else tensor


def vast(shape: tuple[int, ...], dtype: str) -> Any:
    """Zeros, in pages that take no memory until they are written to."""
    kind = np.dtype(tf.as_dtype(dtype).as_numpy_dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        pages = mmap.mmap(-1, math.prod(shape) * kind.itemsize, flags)
        return tf.experimental.dlpack.from_dlpack(np.frombuffer(pages, kind).reshape(shape).__dlpack__())
    except (OSError, ValueError, OverflowError, TypeError, BufferError, RuntimeError, tf.errors.OpError) as error:
        raise CannotMakeError(str(error)) from error


def unaligned(array: Any) -> Any:
    """A tensor over memory that is not aligned as TensorFlow's own is."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + max(OFFSET, array.itemsize)
    view = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return tf.experimental.dlpack.from_dlpack(view.__dlpack__())


def arguments_of(asked: dict[str, Any]) -> dict[str, Any]:
    """By name; lists where the op wants lists. Equal inputs are one tensor where the call says so."""
    made: dict[str, Any] = {}

    def tensor(spec: dict[str, Any]) -> Any:
        key = repr(spec) if asked.get("aliased") else str(len(made))
        if key not in made:
            made[key] = tensor_of(spec, not asked.get("unaligned"))
        return made[key]

    arguments: dict[str, Any] = {}
    for each in asked["arguments"]:
        tensors = [tensor(spec) for spec in each["arrays"]]
        arguments[each["name"]] = tensors if each["list"] else tensors[0]
    return arguments


def settings_of(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: setting(kind, value) for name, kind, value in asked["settings"]}


def setting(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return [setting(kind[5:-1], each) for each in value]
    if kind == "type":
        return tf.as_dtype(value)
    if kind == "shape":
        return tf.TensorShape(None if value is None else [None if size < 0 else size for size in value])
    return value.encode("latin-1") if kind == "string" else value


def flat(arguments: dict[str, Any]) -> list[Any]:
    return [each for value in arguments.values() for each in (value if isinstance(value, list) else [value])]


def grouped(arguments: dict[str, Any], tensors: Any) -> dict[str, Any]:
    """The same names with other tensors, which are given in a row."""
    rest = iter(tensors)
    return {
        name: [next(rest) for _ in value] if isinstance(value, list) else next(rest)
        for name, value in arguments.items()
    }


@contextlib.contextmanager
def no_more_than(room: int | None) -> Iterator[None]:
    """So much address space may be added: an allocation that is as vast as its inputs fails, and takes nothing."""
    if room is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * mmap.PAGESIZE
    most = used + room if before[1] == resource.RLIM_INFINITY else min(used + room, before[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


# ------------------------------------------------------------------------------------------- new memory

turns = itertools.count()
fence: dict[str, int] = {}  # of the preloaded fence, if there is one: its table, and where its settings stand in it


def perturb(value: int) -> None:
    """What new memory is filled with (and by malloc also old); 0: nothing."""
    ctypes.CDLL(None).mallopt(-6, value ^ 0xFF if value else 0)
    _set("fill", value if value else -1)


def shift_guards() -> None:
    """A guard stands before one block of four: so that calls that allocate alike do not miss it for ever."""
    if not fence:
        return
    libc, block = ctypes.CDLL(None), ctypes.c_void_p()
    for _ in range(next(turns) % 4):
        libc.posix_memalign(ctypes.byref(block), 64, 64)
        libc.free(block)


def fence_every(aligned: int, plain: int) -> None:
    """One of so many blocks is fenced; 0: none."""
    _set("aligned_every", aligned)
    _set("every", plain)


def _set(name: str, value: int) -> None:
    if fence:
        os.pwrite(fence["table"], struct.pack("<i", value), fence[name])
