"""Tensors in memory: type, shape, where the values lie, and the values themselves up to a limit."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.inspection.tensorflow.cpp import Objects
from faultlens.inspection.tensorflow.pages import SpentError
from faultlens.records.crash import Address, Kernel, Tensor

MAX_CONTENTS = 64 << 10  # bytes of one tensor
MAX_ALL_CONTENTS = 1 << 20
MAX_DIMENSIONS = 254
MAX_SIZE = (1 << 63) - 1  # of a dimension; a tensor without elements may have one like this

_BUFFER = b"N10tensorflow12TensorBufferE"


class DataType(NamedTuple):
    name: str
    size: int  # of one value, in bytes; 0 for objects


# The numbers of enum DataType in tensorflow/core/framework/types.proto, named as in tf.dtypes.
TYPES = {
    1: DataType("float32", 4), 2: DataType("float64", 8), 3: DataType("int32", 4), 4: DataType("uint8", 1),
    5: DataType("int16", 2), 6: DataType("int8", 1), 7: DataType("string", 0), 8: DataType("complex64", 8),
    9: DataType("int64", 8), 10: DataType("bool", 1), 11: DataType("qint8", 1), 12: DataType("quint8", 1),
    13: DataType("qint32", 4), 14: DataType("bfloat16", 2), 15: DataType("qint16", 2), 16: DataType("quint16", 2),
    17: DataType("uint16", 2), 18: DataType("complex128", 16), 19: DataType("float16", 2), 20: DataType("resource", 0),
    21: DataType("variant", 0), 22: DataType("uint32", 4), 23: DataType("uint64", 8), 24: DataType("float8_e5m2", 1),
    25: DataType("float8_e4m3fn", 1), 26: DataType("float8_e4m3fnuz", 1), 27: DataType("float8_e4m3b11fnuz", 1),
    28: DataType("float8_e5m2fnuz", 1), 29: DataType("int4", 1), 30: DataType("uint4", 1), 31: DataType("int2", 1),
    32: DataType("uint2", 1), 33: DataType("float4_e2m1fn", 1),
}  # fmt: skip
REFERENCE = 100  # is added for inputs of old variables, which are passed by reference


def type_name(number: int) -> str | None:
    kind = TYPES.get(number % REFERENCE if number < 2 * REFERENCE else 0)
    return (kind.name + ("_ref" if number > REFERENCE else "")) if kind else None


# ------------------------------------------------------------------------------------- type and shape


def read_tensor(objects: Objects, address: int, declared: int) -> Tensor | None:
    """The Tensor at `address`, which must be of the type that the op declares; None where it makes no sense."""
    pages, layout = objects.pages, objects.layout
    rep = pages.read(address + layout.tensor_shape, layout.sizeof_shape)
    if not rep or address % 8:
        return None
    kind = TYPES.get(rep[layout.shape_dtype])
    if kind is None or rep[layout.shape_dtype] != declared % REFERENCE:
        return None
    shape = _shape(objects, rep)
    if shape is None or math.prod(shape) != int.from_bytes(rep[layout.shape_elements :][:8], "little"):
        return None
    each = layout.sizeof_tstring if kind.name == "string" else kind.size
    size = math.prod(shape) * each if each else None
    buffer = pages.word(address + layout.tensor_buffer)
    if buffer == 0:  # nothing in it, or never set
        return Tensor(dtype=kind.name, shape=shape)
    classes = objects.classes(buffer)
    if classes is None or (classes and _BUFFER not in classes):
        return None
    data = pages.word(buffer + layout.buffer_data)
    return Tensor(dtype=kind.name, shape=shape, address=Address(data) if data else None, size=size)


def _shape(objects: Objects, rep: bytes) -> tuple[int, ...] | None:
    layout = objects.layout
    rank, tag = rep[layout.shape_ndims], rep[layout.shape_tag]
    if rank > MAX_DIMENSIONS:
        return None
    if tag == layout.shape_tag_16:
        return _dimensions(rep[layout.shape_dims :], "H", 6, rank)
    if tag == layout.shape_tag_32:
        return _dimensions(rep[layout.shape_dims :], "I", 3, rank)
    if tag != layout.shape_tag_out_of_line:
        return None
    vector = int.from_bytes(rep[layout.shape_dims :][:8], "little")
    data, length = objects.inlined_vector(vector)
    raw = objects.pages.read(data, 8 * rank) if vector and length == rank else b""
    return _dimensions(raw, "Q", rank, rank) if raw else None


def _dimensions(raw: bytes, code: str, room: int, rank: int) -> tuple[int, ...] | None:
    if rank > room:
        return None
    shape = struct.unpack_from(f"<{rank}{code}", raw)
    unknown = (1 << 8 * struct.calcsize(f"<{code}")) - 1
    return shape if unknown not in shape and all(size <= MAX_SIZE for size in shape) else None


# ------------------------------------------------------------------------------------------- contents


def with_contents(objects: Objects, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels with the values of their inputs, the first ones first, as far as the limits allow."""
    reader = _Contents(objects)
    filled: list[Kernel] = []
    try:
        for kernel in kernels:
            filled.append(replace(kernel, inputs=tuple(map(reader.fill, kernel.inputs))))
    except SpentError:
        pass
    return (*filled, *kernels[len(filled) :])


class _Contents:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._left = MAX_ALL_CONTENTS
        self._filled: dict[Tensor, Tensor] = {}  # two inputs are often one tensor

    def fill(self, tensor: Tensor | None) -> Tensor | None:
        if tensor is None or tensor.address is None:
            return tensor
        if tensor not in self._filled:
            filled = self._read(tensor)
            self._left -= len(filled.contents or b"") + sum(map(len, filled.strings or ()))
            self._filled[tensor] = filled
        return self._filled[tensor]

    def _read(self, tensor: Tensor) -> Tensor:
        limit = min(MAX_CONTENTS, self._left)
        if tensor.dtype == "string":
            return replace(tensor, strings=read_strings(self._objects, tensor, limit))
        if tensor.size is None or not 0 < tensor.size <= limit or not self._is_plain(tensor.address or 0):
            return tensor
        data = self._objects.pages.read_bulk(tensor.address or 0, tensor.size)
        return replace(tensor, contents=data) if len(data) == tensor.size else tensor

    def _is_plain(self, address: int) -> bool:
        """Ordinary memory or a file; to read the registers of a device may do anything."""
        mapping = self._objects.pages.mapping(address)
        if mapping is None:
            return False
        path = mapping.path or ""
        return not path.startswith("/dev/") or path.startswith("/dev/shm/")


def read_strings(objects: Objects, tensor: Tensor, limit: int) -> tuple[bytes, ...] | None:
    """All strings of a tensor of strings, or None where they take more than `limit` bytes or cannot be read."""
    count, step = math.prod(tensor.shape), objects.layout.sizeof_tstring
    if tensor.address is None or count * step > limit:
        return None
    strings = []
    for index in range(count):
        text = _tstring(objects, tensor.address + index * step, limit)
        if text is None:
            return None
        strings.append(text)
        limit -= len(text)
    return tuple(strings)


def _tstring(objects: Objects, address: int, limit: int) -> bytes | None:
    pages, layout = objects.pages, objects.layout
    raw = pages.read(address, layout.sizeof_tstring)
    if not raw:
        return None
    kind = raw[0] & layout.tstring_type_mask
    bits = layout.tstring_type_mask.bit_length()
    if kind == layout.tstring_type_small:
        start = layout.tstring_small_text
        text = raw[start : start + (raw[layout.tstring_small_size] >> bits)]
        return text if len(text) == raw[layout.tstring_small_size] >> bits else None
    if kind == layout.tstring_type_offset:
        size, offset = _number(raw, layout.tstring_offset_size, 4), _number(raw, layout.tstring_offset_offset, 4)
        return objects.text(address + offset, size >> bits, limit)
    large = kind == layout.tstring_type_large
    size = _number(raw, layout.tstring_large_size if large else layout.tstring_view_size, 8)
    pointer = _number(raw, layout.tstring_large_pointer if large else layout.tstring_view_pointer, 8)
    return objects.text(pointer, size >> bits, limit)


def _number(raw: bytes, offset: int, size: int) -> int:
    return int.from_bytes(raw[offset : offset + size], "little")
