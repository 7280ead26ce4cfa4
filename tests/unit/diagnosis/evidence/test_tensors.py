"""Inputs of ops in words: types, shapes and the first values, whatever bytes a report holds."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultlens.diagnosis.evidence.kernels import tensor_in_words
from faultlens.records.crash import Tensor
from faultlens.report.tensors import holds_few_numbers, kept_size, values_in_words

NOT_A_NUMBER = float("nan")


def tensor(dtype: str, shape: tuple[int, ...], code: str = "", *values: object, **facts: object) -> Tensor:
    contents = struct.pack(f"<{len(values)}{code}", *values) if code else None
    return Tensor(dtype=dtype, shape=shape, contents=contents, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "not set"),
        (tensor("float32", (3, 4, 8)), "float32 [3, 4, 8]"),
        (tensor("resource", ()), "resource []"),
        (tensor("int8", tuple(range(12))), "int8 [0, 1, 2, 3, 4, 5, 6, 7, … 12 dimensions in all]"),
        (tensor("\x1b[31mx", (10**60,)), "x [100000000000…00000000000]"),
    ],
)
def test_type_and_shape(given: Tensor | None, words: str) -> None:
    assert tensor_in_words(given) == words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (tensor("int64", (), "q", -9), "-9"),
        (tensor("int32", (3,), "i", 1, 2, 3), "1, 2, 3"),
        (tensor("int32", (6,), "i", 1, 2, 3, 4, -1, 70), "1, 2, 3, 4, …, from -1 to 70"),
        (tensor("uint8", (2, 3), "B", *[7] * 6), "all 7"),
        (tensor("uint8", (4,), "B", *[7] * 4), "all 7"),
        (tensor("uint8", (3,), "B", *[7] * 3), "7, 7, 7"),
        (tensor("bool", (2,), "?", True, False), "True, False"),
        (tensor("float32", (2,), "f", 0.1, float("inf")), "0.1, inf"),
        (tensor("float64", (5,), "d", 1, NOT_A_NUMBER, 3, 4, 5), "1, nan, 3, 4, …, from 1 to 5, 1 not a number"),
        (tensor("float16", (5,), "e", *[NOT_A_NUMBER] * 5), "all nan"),
        (tensor("bfloat16", (2,), "H", 0x3F80, 0xC040), "1, -3"),
        (tensor("complex64", (1,), "f", 1.5, -2), "1.5-2j"),
        (tensor("complex64", (5,), "f", *[1, 0] * 5), "all 1+0j"),
        (tensor("complex128", (5,), "d", *range(10)), "0+1j, 2+3j, 4+5j, 6+7j, …"),
        (tensor("float32", (0, 3), "f"), None),
        (tensor("float32", (2,)), None),
        # What does not fit is not decoded.
        (tensor("float32", (2,), "f", 1), "4 bytes that do not fit the type and shape"),
        (tensor("float32", (-1,), "f", 1), "4 bytes that do not fit the type and shape"),
        (tensor("float32", (2**62, 2**62), "f", 1), "4 bytes that do not fit the type and shape"),
        (tensor("float8_e5m2", (2,), "B", 1, 2), "2 bytes"),
        (tensor("string", (2,), strings=(b"caf\xc3\xa9 \x1b[31m", b"\xff")), r"'café \x1b[31m', '\xff'"),
        (tensor("string", (9,), strings=(b"a",) * 9), "'a', 'a', 'a', 'a', …"),
        (tensor("string", (1,), strings=(b"x" * 90,)), f"'{'x' * 39}… (90 bytes)"),
        (tensor("string", (0,), strings=()), None),
    ],
)
def test_values(given: Tensor, words: str | None) -> None:
    assert values_in_words(given, 4) == words


def test_of_very_many_values_only_the_first_are_decoded() -> None:
    many = Tensor(dtype="uint8", shape=(1 << 20,), contents=bytes(1 << 20))
    assert values_in_words(many, 2) == "0, 0, …"


def test_what_is_kept() -> None:
    assert kept_size(None) is None
    assert kept_size(tensor("float32", (2,))) is None
    assert kept_size(tensor("float32", (0,), "f")) == 0
    assert kept_size(tensor("string", (2,), strings=(b"abc", b"d"))) == 4


def test_a_single_number_stands_beside_its_type() -> None:
    assert holds_few_numbers(tensor("int64", (1, 1), "q", 3), 4)
    assert holds_few_numbers(tensor("int64", (2,), "q", 1, 2), 4)
    for other in (None, tensor("int64", ()), tensor("int64", (2,), "q", 1, 2), tensor("variant", (), "q", 1)):
        assert not holds_few_numbers(other, 1)
    assert not holds_few_numbers(tensor("float32", (2,), "f", 1, 2), 4)


TYPES = ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex128", "string", "resource", "\x00?"]


@given(
    dtype=st.sampled_from(TYPES),
    shape=st.lists(st.integers(-3, 5) | st.integers(), max_size=10),
    contents=st.none() | st.binary(max_size=200),
    strings=st.none() | st.lists(st.binary(max_size=100), max_size=10),
)
def test_any_tensor(dtype: str, shape: list[int], contents: bytes | None, strings: list[bytes] | None) -> None:
    given = Tensor(
        dtype=dtype, shape=tuple(shape), contents=contents, strings=tuple(strings) if strings is not None else None
    )
    for words in (tensor_in_words(given), values_in_words(given, 4) or ""):
        assert words.isprintable()
        assert len(words) < 1000
