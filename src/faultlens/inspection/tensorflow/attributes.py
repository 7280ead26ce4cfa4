"""The attributes of a node, decoded from its NodeDef message as protobuf keeps it in memory."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator

from faultlens.inspection.tensorflow.cpp import WORD, Objects
from faultlens.inspection.tensorflow.tensors import MAX_DIMENSIONS, type_name
from faultlens.records.crash import Attribute

MAX_ATTRIBUTES = 64
MAX_BUCKETS = 1024
MAX_LIST = 1024
MAX_KEY = 128

_NAME = re.compile(rb"[A-Za-z_][\w.]*")

# Field numbers of message AttrValue in tensorflow/core/framework/attr_value.proto.
_LIST, _STRING, _INT, _FLOAT, _BOOL, _TYPE, _SHAPE, _FUNC = 1, 2, 3, 4, 5, 6, 7, 10
_OTHER = Attribute(kind="other")


class DamagedError(Exception):
    """What should be a message is none."""


def read_attributes(objects: Objects, node_def: int) -> dict[str, Attribute]:
    """By name. TensorFlow's own notes, which begin with "_", are left out; all of it where the map is damaged."""
    try:
        found = dict(_entries(objects, node_def + objects.layout.node_def_attr))
    except DamagedError:
        return {}
    return {name: found[name] for name in sorted(found) if not name.startswith("_")}


def _entries(objects: Objects, address: int) -> Iterator[tuple[str, Attribute]]:
    """The pairs of a protobuf Map<string, AttrValue>: a table of buckets, each a list of nodes."""
    pages, layout = objects.pages, objects.layout
    count = pages.number(address + layout.map_elements, layout.sizeof_map_count)
    buckets = pages.number(address + layout.map_buckets, layout.sizeof_map_count)
    if count is None or buckets is None or count > MAX_ATTRIBUTES or buckets > MAX_BUCKETS:
        raise DamagedError
    table = pages.read(pages.word(address + layout.map_table), buckets * WORD) if count else b""
    left = count
    for (node,) in struct.iter_unpack("<Q", table):
        while node:
            if left == 0 or node % WORD:  # a list that runs in a circle, or a tree: long buckets become one
                raise DamagedError
            left -= 1
            key = objects.string(node + layout.map_node_key, MAX_KEY)
            if not key or not _NAME.fullmatch(key):
                raise DamagedError
            yield key.decode("ascii"), _attribute_or_other(objects, node + layout.map_node_value)
            node = pages.word(node + layout.map_node_next)
    if left:
        raise DamagedError


def _attribute_or_other(objects: Objects, address: int) -> Attribute:
    try:
        return _attribute(objects, address)
    except DamagedError:
        return _OTHER


def _attribute(objects: Objects, address: int) -> Attribute:
    pages, layout = objects.pages, objects.layout
    case = pages.number(address + layout.attr_case, 4)
    place = address + layout.attr_value
    raw = pages.read(place, WORD)
    if not raw:
        raise DamagedError
    if case == _INT:
        return Attribute(kind="int", value=int.from_bytes(raw, "little", signed=True))
    if case == _FLOAT:
        return Attribute(kind="float", value=_float(raw))
    if case == _BOOL and raw[0] <= 1:
        return Attribute(kind="bool", value=bool(raw[0]))
    if case == _TYPE:
        return _of("type", type_name(int.from_bytes(raw[:4], "little")))
    if case == _STRING:
        return _of("string", _text(objects, objects.arena_string(place)))
    message = int.from_bytes(raw, "little")
    if case == _SHAPE:
        return Attribute(kind="shape", value=_shape(objects, message))
    if case == _FUNC:
        return _of("func", _function(objects, message))
    if case == _LIST:
        return _list(objects, message)
    return _OTHER


def _of(kind: str, value: object) -> Attribute:
    return _OTHER if value is None else Attribute(kind=kind, value=value)


def _float(raw: bytes) -> float | str:
    """JSON has no word for infinity or for what is not a number: they are told in text."""
    (value,) = struct.unpack("<f", raw[:4])
    return float(value) if math.isfinite(value) else str(value)


def _text(objects: Objects, string: int) -> str | None:
    raw = objects.string(string)
    try:
        return raw.decode() if raw is not None else None
    except UnicodeDecodeError:
        return None


def _function(objects: Objects, message: int) -> str | None:
    return _text(objects, objects.arena_string(message + objects.layout.func_name)) or None


def _shape(objects: Objects, message: int) -> list[int] | None:
    """None: even the number of dimensions is open."""
    pages, layout = objects.pages, objects.layout
    if pages.number(message + layout.shape_proto_unknown_rank, 1):
        return None
    sizes = [pages.read(dim + layout.dim_size, WORD) for dim in _pointers(objects, message + layout.shape_proto_dim)]
    if len(sizes) > MAX_DIMENSIONS or not all(sizes):
        raise DamagedError
    return [int.from_bytes(size, "little", signed=True) for size in sizes]


def _list(objects: Objects, message: int) -> Attribute:
    """At most one of its fields is filled; an empty list does not say of what."""
    layout = objects.layout
    plain: tuple[tuple[str, int, int, Callable[[bytes], object]], ...] = (
        ("int", layout.list_i, 8, lambda raw: int.from_bytes(raw, "little", signed=True)),
        ("float", layout.list_f, 4, _float),
        ("bool", layout.list_b, 1, lambda raw: raw != b"\0"),
        ("type", layout.list_type, 4, lambda raw: type_name(int.from_bytes(raw, "little"))),
    )
    for kind, field, size, decode in plain:
        if data := _plain_values(objects, message + field, size):
            values = [decode(data[start : start + size]) for start in range(0, len(data), size)]
            return _of_list(kind, values)
    pointed: tuple[tuple[str, int, Callable[[int], object]], ...] = (
        ("string", layout.list_s, lambda string: _text(objects, string)),
        ("shape", layout.list_shape, lambda shape: _shape(objects, shape)),
        ("func", layout.list_func, lambda func: _function(objects, func)),
    )
    for kind, field, read in pointed:
        if pointers := _pointers(objects, message + field):
            return _of_list(kind, [read(pointer) for pointer in pointers])
    return Attribute(kind="list", value=[])


def _of_list(kind: str, values: list[object]) -> Attribute:
    if None in values and kind != "shape":
        return _OTHER
    return Attribute(kind=f"list({kind})", value=values)


def _plain_values(objects: Objects, field: int, size: int) -> bytes:
    """The bytes of a RepeatedField, which keeps very few values in itself."""
    pages, layout = objects.pages, objects.layout
    word = pages.word(field + layout.repeated_pointer)
    if layout.repeated_long_bit and not word & layout.repeated_long_bit:
        count, data = word & layout.repeated_inline_mask, field + layout.repeated_inline
    else:
        count, data = pages.number(field + layout.repeated_size, 4) or 0, word & ~layout.repeated_tag_mask
    return _all(objects, data, count, size)


def _pointers(objects: Objects, field: int) -> list[int]:
    """What a RepeatedPtrField points to; a single element it holds itself."""
    pages, layout = objects.pages, objects.layout
    count = pages.number(field + layout.pointers_size, 4) or 0
    word = pages.word(field + layout.pointers_array)
    if layout.pointers_many_bit and not word & layout.pointers_many_bit:
        if count > 1:
            raise DamagedError
        return [word][:count]
    data = (word & ~layout.pointers_many_bit) + layout.pointers_first
    return [pointer for (pointer,) in struct.iter_unpack("<Q", _all(objects, data, count, WORD))]


def _all(objects: Objects, data: int, count: int, size: int) -> bytes:
    raw = objects.pages.read(data, count * size) if 0 < count <= MAX_LIST else b""
    if count and not raw:
        raise DamagedError
    return raw
