"""Tensors as they lie in memory: shapes in their three forms, types, strings in their four."""

from __future__ import annotations

import struct

import pytest

from fake_memory import FakeMemory, mapping
from faultlens.inspection.tensorflow.cpp import Objects
from faultlens.inspection.tensorflow.pages import Pages
from faultlens.inspection.tensorflow.tensors import (
    MAX_CONTENTS,
    TYPES,
    read_strings,
    read_tensor,
    type_name,
    with_contents,
)
from faultlens.records.crash import Address, Kernel, Tensor
from kernel_images import layouts_of

HEAP, DATA, DEVICE = 0x10000, 0x40000, 0x90000
FLOAT, INT64, STRING = 1, 9, 7


def objects(*parts: tuple[int, bytes]) -> Objects:
    mappings = (
        mapping(HEAP, HEAP + 0x10000, "rw-p"),
        mapping(DATA, DATA + 0x40000, "rw-p"),
        mapping(DEVICE, DEVICE + 0x10000, "rw-s", "/dev/nvidia0"),
    )
    whole = {int(each.start): bytearray(each.end - each.start) for each in mappings}
    for start, data in parts:
        home = max(each for each in whole if each <= start)
        whole[home][start - home : start - home + len(data)] = data
    memory = FakeMemory({start: bytes(data) for start, data in whole.items()})
    return Objects(Pages(memory, mappings, seconds=60), layouts_of("2.21")[0])


def tensor_of(dims: bytes, rank: int, tag: int, elements: int, dtype: int = FLOAT) -> bytes:
    """A Tensor without a buffer."""
    return dims.ljust(13, b"\0") + bytes([dtype, rank, tag]) + struct.pack("<QQ", elements, 0)


def shape_of(raw: bytes, *more: tuple[int, bytes], declared: int = FLOAT) -> tuple[int, ...] | None:
    tensor = read_tensor(objects((HEAP, raw), *more), HEAP, declared)
    return tensor.shape if tensor else None


# ------------------------------------------------------------------------------------------------- shapes


def test_small_large_and_many_dimensions() -> None:
    assert shape_of(tensor_of(b"", 0, 0, 1)) == ()
    assert shape_of(tensor_of(struct.pack("<6H", 1, 2, 3, 4, 5, 6), 6, 0, 720)) == (1, 2, 3, 4, 5, 6)
    assert shape_of(tensor_of(struct.pack("<3I", 1 << 20, 3, 70_000), 3, 1, (1 << 20) * 210_000)) == (
        1 << 20,
        3,
        70_000,
    )
    inline = (HEAP + 0x100, struct.pack("<Q4q", 4 << 1, 1 << 40, 0, 7, 8))
    assert shape_of(tensor_of(struct.pack("<Q", HEAP + 0x100), 4, 2, 0), inline) == (1 << 40, 0, 7, 8)
    allocated = (HEAP + 0x100, struct.pack("<QQQ", 7 << 1 | 1, HEAP + 0x200, 8))
    sizes = (HEAP + 0x200, struct.pack("<7q", *[2] * 7))
    assert shape_of(tensor_of(struct.pack("<Q", HEAP + 0x100), 7, 2, 128), allocated, sizes) == (2,) * 7


@pytest.mark.parametrize(
    "raw",
    [
        tensor_of(struct.pack("<2H", 3, 4), 2, 0, 13),  # another number of elements
        tensor_of(struct.pack("<2H", 3, 4), 2, 3, 12),  # no such form
        tensor_of(struct.pack("<6H", *[1] * 6), 7, 0, 1),  # more dimensions than there is room for
        tensor_of(struct.pack("<2H", 3, 0xFFFF), 2, 0, 3 * 0xFFFF),  # an unknown size
        tensor_of(b"", 255, 0, 1),  # an unknown rank
        tensor_of(struct.pack("<Q", HEAP + 0x100), 4, 2, 0),  # a vector of another length
        tensor_of(struct.pack("<Q", 0x10), 4, 2, 0),  # a vector that is nowhere
        tensor_of(struct.pack("<2H", 3, 4), 2, 0, 12, dtype=INT64),  # not the type that the op declares
        tensor_of(struct.pack("<2H", 3, 4), 2, 0, 12, dtype=0),
    ],
)
def test_what_makes_no_sense_is_no_tensor(raw: bytes) -> None:
    assert shape_of(raw) is None


def test_an_input_by_reference_is_of_the_plain_type() -> None:
    assert shape_of(tensor_of(struct.pack("<2H", 3, 4), 2, 0, 12), declared=FLOAT + 100) == (3, 4)


def test_types_have_tensorflows_names() -> None:
    assert (type_name(1), type_name(14), type_name(19), type_name(25)) == (
        *("float32", "bfloat16"),
        *("float16", "float8_e4m3fn"),
    )
    assert type_name(101) == "float32_ref"
    assert [type_name(number) for number in (0, 99, 100, 200, 201, 1 << 31)] == [None] * 6
    assert sorted(TYPES) == list(range(1, 34))


# ----------------------------------------------------------------------------------------------- contents


def filled(tensor: Tensor, memory: Objects) -> Tensor:
    (kernel,) = with_contents(memory, (Kernel(op="Any", node="any", thread=1, inputs=(tensor, None)),))
    assert kernel.inputs[0] is not None
    return kernel.inputs[0]


def floats(count: int, address: int = DATA) -> Tensor:
    return Tensor(dtype="float32", shape=(count,), address=Address(address), size=4 * count)


def test_contents_up_to_the_limit() -> None:
    values = struct.pack("<3f", 1.5, -2.0, 0.25)
    assert filled(floats(3), objects((DATA, values))).contents == values
    assert len(filled(floats(MAX_CONTENTS // 4), objects()).contents or b"") == MAX_CONTENTS
    assert filled(floats(MAX_CONTENTS // 4 + 1), objects()).contents is None


def test_no_contents_where_none_can_be_read() -> None:
    assert filled(floats(3, address=0x5000), objects()).contents is None
    assert filled(floats(3, address=DATA + 0x40000 - 4), objects()).contents is None
    assert filled(floats(3, address=DEVICE), objects()).contents is None, "to read from a device may do anything"


def test_all_contents_together_have_a_limit() -> None:
    inputs = tuple(floats(0x3000, DATA + 16 * index) for index in range(40))  # 48 KiB each
    (kernel,) = with_contents(objects(), (Kernel(op="Any", node="any", thread=1, inputs=inputs),))
    kept = [tensor for tensor in kernel.inputs if tensor and tensor.contents]
    assert 0 < len(kept) < len(inputs)
    assert sum(len(tensor.contents or b"") for tensor in kept) <= 1 << 20


def strings(memory: Objects, count: int, limit: int = MAX_CONTENTS) -> tuple[bytes, ...] | None:
    tensor = Tensor(dtype="string", shape=(count,), address=Address(DATA))
    return read_strings(memory, tensor, limit)


def test_strings_in_their_four_forms() -> None:
    small = bytes([3 << 2]) + b"abc".ljust(23, b"\0")
    large = struct.pack("<QQQ", 130 << 2 | 1, 192, HEAP)
    offset = struct.pack("<III", 4 << 2 | 2, 24 * 4 - 24 * 2, 0).ljust(24, b"\0")
    view = struct.pack("<QQ", 5 << 2 | 3, HEAP + 0x100).ljust(24, b"\0")
    memory = objects((DATA, small + large + offset + view + b"tail"), (HEAP, b"x" * 130), (HEAP + 0x100, b"a\0\xffz!"))
    assert strings(memory, 4) == (b"abc", b"x" * 130, b"tail", b"a\0\xffz!")
    assert strings(memory, 4, limit=100) is None, "the texts take more than that"


def test_strings_that_point_nowhere_are_not_told() -> None:
    assert strings(objects((DATA, struct.pack("<QQQ", 30 << 2 | 1, 48, 0x10))), 1) is None
    assert strings(objects((DATA, struct.pack("<QQQ", 1 << 60 | 1, 48, HEAP))), 1) is None
    assert strings(objects((DATA, bytes([60 << 2]) + bytes(23))), 1) is None, "longer than it can hold"
