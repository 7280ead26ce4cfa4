"""An input of an op in words: its type and shape, and the first of its values where its contents were kept."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from itertools import pairwise

from faultlens.records.crash import Tensor
from faultlens.text.quantities import count
from faultlens.text.safe import ELLIPSIS

_MOST_DIMENSIONS = 254  # that TensorFlow allows
_LONGEST_NUMBER, _LONGEST_STRING = 24, 40
_MANY = 4  # equal values need not be listed
_DECODED = 1 << 16  # values; of more only the first ones, so that a huge input takes little time

# How struct names the types of plain values; bfloat16 is the upper half of a float32.
_BFLOAT16 = "bfloat16"
_COMPLEX = {"complex64": "f", "complex128": "d"}
_PLAIN = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "qint8": "b", "qint16": "h", "qint32": "i",
    "quint8": "B", "quint16": "H", _BFLOAT16: "H", **_COMPLEX,
}  # fmt: skip

Value = bool | int | float | complex


def holds_few_numbers(tensor: Tensor | None, most: int) -> bool:
    """A single number, or a few whole ones, that were kept: short enough to stand beside the type."""
    if tensor is None or tensor.contents is None or tensor.dtype not in _PLAIN:
        return False
    number = _elements(tensor)
    return number == 1 or (number is not None and 0 < number <= most and "int" in tensor.dtype)


def values_in_words(tensor: Tensor, most: int) -> str | None:
    """ "1, 2, 3, …, from -1 to 9999"; None where there are no values to show."""
    if tensor.strings is not None:
        shown = [_quoted(text) for text in tensor.strings[:most]]
        return _listed(shown, len(tensor.strings)) if shown else None
    if not tensor.contents:
        return None
    values, number = _values(tensor, most)
    if values is None:
        told = count(len(tensor.contents), "byte")
        return f"{told} that do not fit the type and shape" if tensor.dtype in _PLAIN else told
    course = _course(values) if len(values) == number else ""
    if course.startswith("all") and number >= _MANY:
        return course
    listed = _listed([number_in_words(value) for value in values[:most]], number)
    return f"{listed}, {course}" if course and number > most else listed


def kept_size(tensor: Tensor | None) -> int | None:
    """How many bytes of its contents the report holds; None when none."""
    if tensor is None or (tensor.contents is None and tensor.strings is None):
        return None
    return len(tensor.contents or b"") + sum(map(len, tensor.strings or ()))


def _values(tensor: Tensor, most: int) -> tuple[Sequence[Value] | None, int]:
    """The values, of very many only the first, and how many there are. None when they make no sense."""
    contents, code, number = tensor.contents or b"", _PLAIN.get(tensor.dtype), _elements(tensor)
    if code is None or number is None:
        return None, 0
    parts = 2 if tensor.dtype in _COMPLEX else 1
    each = parts * struct.calcsize(code)
    if number * each != len(contents):
        return None, 0
    decoded = number if number <= _DECODED else most
    contents = contents[: decoded * each]
    if tensor.dtype == _BFLOAT16:
        code, contents = "f", _widened(contents)
    found: Sequence[Value] = struct.unpack(f"<{parts * decoded}{code}", contents)
    if tensor.dtype in _COMPLEX:
        found = [complex(*found[start : start + 2]) for start in range(0, len(found), 2)]
    return found, number


def _widened(halves: bytes) -> bytes:
    """Values of bfloat16 as float32."""
    whole = bytearray(2 * len(halves))
    whole[2::4], whole[3::4] = halves[0::2], halves[1::2]
    return bytes(whole)


def _elements(tensor: Tensor) -> int | None:
    """None for a shape that no tensor has."""
    if len(tensor.shape) > _MOST_DIMENSIONS or any(not 0 <= dimension < 1 << 63 for dimension in tensor.shape):
        return None
    return math.prod(tensor.shape)


def _course(values: Sequence[Value]) -> str:
    """ "from -1 to 9999, 2 not a number", "all 0"."""
    if any(isinstance(value, complex) for value in values[:1]):
        return "" if any(one != other for one, other in pairwise(values)) else f"all {number_in_words(values[0])}"
    numbers = [value for value in values if value == value]
    lost = len(values) - len(numbers)
    if not numbers:
        return f"all {number_in_words(values[0])}"
    lowest, highest = min(numbers), max(numbers)  # type: ignore[type-var]
    if lowest == highest and not lost:
        return f"all {number_in_words(lowest)}"
    course = f"from {number_in_words(lowest)} to {number_in_words(highest)}"
    return f"{course}, {lost:,} not a number" if lost else course


def number_in_words(value: Value) -> str:
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)


def _listed(shown: Sequence[str], number: int) -> str:
    more = number - len(shown)
    return ", ".join([*shown, ELLIPSIS] if more > 0 else shown)


def _quoted(text: bytes) -> str:
    """As Python would write it; long ones with their length."""
    start = text[: 2 * _LONGEST_STRING]
    try:
        shown = repr(start.decode())
    except UnicodeDecodeError:
        shown = repr(start)[1:]
    if len(text) <= _LONGEST_STRING and len(shown) <= 2 * _LONGEST_STRING:
        return shown
    return f"{shown[:_LONGEST_STRING]}{ELLIPSIS} ({count(len(text), 'byte')})"
