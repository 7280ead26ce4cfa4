"""What is in the tensors that an op is fuzzed with: values that nobody thinks of. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from faultlens.op_model.arrays import Array, Value, simplest

MOST_VALUES = 512  # larger arrays are filled with one value, or at random

_INTEGERS = {f"{sign}int{bits}": (bits, not sign) for bits in (8, 16, 32, 64) for sign in ("", "u")}
_INTEGERS |= {"qint8": (8, True), "quint8": (8, False), "qint16": (16, True), "quint16": (16, False)}
_INTEGERS |= {"qint32": (32, True)}
_LARGEST = {"float16": 65504.0, "bfloat16": 3e38, "float32": 3e38, "float64": 1e308}
_STRINGS = (
    b"a" * 40,
    b"",
    b"12",
    b"\xff\xfe\x80",
    b"abc def",
    b"-1",
    b"1e999",
    b"0:9999999999",
    b"a",
    b"0",
    b"\0\0",
    b"1,2",
    b"3-1",
)
_LONG = b"x" * 20_000

# Names of contents; besides these, ("last", value): ones, and this value as the last; ("exactly", values): these, and
# again; for strings ("long", length).
PLAIN = ("ones", "ramp", "zeros")
NASTY = ("falling", "negative", "largest", "smallest", "special", "tiny", "minus two", "alternating")
Content = str | tuple[str, int | tuple[int, ...]]
LENGTHS = (1, 2, 3, 5, 8, 9, 16, 33, 65, 1000)
TEXTS: tuple[Content, ...] = ("twice", "brackets", "torn", "numbers", "path", *(("long", each) for each in LENGTHS))


def array_of(dtype: str, shape: tuple[int, ...], content: Content) -> Array:
    size = 1
    for each in shape:
        size *= each
    if isinstance(content, tuple):
        return _with_numbers(dtype, shape, size, *content)
    values = _values(dtype, content)
    if len(values) == 1 or size == 0:
        return Array(dtype, shape, fill=values[0])
    if size > MOST_VALUES:
        return Array(dtype, shape, fill="random" if dtype != "string" and not dtype.startswith("q") else values[-1])
    rows = content == "ramp" and dtype in _INTEGERS and len(shape) == 2 and shape[1] <= 3
    each = shape[1] if rows else 1  # indices into several dimensions rise together
    return simplest(Array(dtype, shape, tuple(values[index // each % len(values)] for index in range(size))))


def _with_numbers(dtype: str, shape: tuple[int, ...], size: int, kind: str, given: int | tuple[int, ...]) -> Array:
    if not isinstance(given, int):
        exact = tuple(_clipped(dtype, value) for value in given) or (_clipped(dtype, 0),)
        if not 0 < size <= MOST_VALUES:
            return Array(dtype, shape, fill=exact[-1])
        return simplest(Array(dtype, shape, tuple(exact[index % len(exact)] for index in range(size))))
    if kind == "long":
        return Array(dtype, shape, fill=b"a" * given)
    if not 0 < size <= MOST_VALUES:
        return Array(dtype, shape, fill=_clipped(dtype, given))
    ones = _values(dtype, "ones")
    return simplest(Array(dtype, shape, (ones[0],) * (size - 1) + (_clipped(dtype, given),)))


@lru_cache(maxsize=1000)
def _values(dtype: str, content: str) -> tuple[Value, ...]:
    """They are repeated until the array is full."""
    if dtype == "string":
        return _strings(content)
    if dtype == "bool":
        return {"zeros": (False,), "ones": (True,)}.get(content, (True, False, True))
    if dtype in _INTEGERS:
        return tuple(_clipped(dtype, value) for value in _integers(dtype, content))
    floats = _floats(_LARGEST.get(dtype, 3e38), content)
    if dtype.startswith("complex"):
        return tuple(complex(value, -value) for value in floats)
    return floats


def _strings(content: str) -> tuple[Value, ...]:
    known: dict[str, tuple[Value, ...]] = {"zeros": (b"",), "ones": (b"12",), "largest": (_LONG,), "tiny": (b"a",)}
    known |= {
        "negative": (b"-1",),
        "special": (b"\xff\xfe\x80",),
        "smallest": (b"0:1", b"0:9999999999"),
        "minus two": (b"1,2", b"7,8,9"),
    }
    known |= {"twice": (b"a=1;b=2;a=3",), "brackets": (b"{[(<a",), "torn": (b"\xe2\x82",), "numbers": (b"1 2.5 -3",)}
    known |= {"path": (b"http://a.b/c?d=e",)}
    known |= {"alternating": (_LONG, b"", b"12")}
    return known.get(content, _STRINGS)


def _integers(dtype: str, content: str) -> Sequence[int]:
    bits, signed = _INTEGERS[dtype]
    top, bottom = (1 << (bits - signed)) - 1, -(1 << (bits - 1)) if signed else 0
    known: dict[str, Sequence[int]] = {"ones": (1,), "zeros": (0,), "ramp": range(100), "falling": range(100, 0, -1)}
    known |= {"negative": (-1,), "minus two": (-2,), "largest": (top,), "smallest": (bottom,)}
    known |= {"special": (bottom, top, 0, -1, 1), "alternating": (0, 3, 1, 2), "tiny": (2,)}
    return known[content]


def _floats(largest: float, content: str) -> tuple[float, ...]:
    nan, infinite = float("nan"), float("inf")
    known: dict[str, tuple[float, ...]] = {"ones": (1.0,), "zeros": (0.0,), "negative": (-1.0,), "minus two": (-2.5,)}
    known |= {"ramp": tuple(0.25 + each * 0.375 for each in range(64)), "falling": tuple(9.5 - k for k in range(40))}
    known |= {"largest": (largest,), "smallest": (-largest,), "tiny": (1e-41, -1e-41, 1e-38)}
    known |= {"special": (nan, infinite, -infinite, 0.0, -0.0, 1.0), "alternating": (nan,)}
    return known[content]


def _clipped(dtype: str, value: int) -> Value:
    if dtype == "string":
        return str(value).encode()
    if dtype == "bool":
        return bool(value)
    if dtype not in _INTEGERS:
        return complex(value) if dtype.startswith("complex") else min(float(value), _LARGEST.get(dtype, 3e38))
    bits, signed = _INTEGERS[dtype]
    return min(max(value, -(1 << (bits - 1)) if signed else 0), (1 << (bits - signed)) - 1)


def is_integer(dtype: str) -> bool:
    return dtype in _INTEGERS


def index_like(sizes: Sequence[int]) -> Iterator[int]:
    """Around the ends of what is indexed, and where numbers overflow."""
    near = sorted({each + shift for each in sizes if each < 1 << 20 for shift in (-1, 0, 1)} | {-1, 0, 1, 1 << 16})
    yield from near
    yield from ((1 << 31) - 1, 1 << 31, 1 << 62, -(1 << 31), -(1 << 63), (1 << 63) - 1)


# ------------------------------------------------------------------------------------------ attributes


def settings_of(kind: str, allowed: Sequence[Any] | None, minimum: int | None) -> tuple[Any, ...]:
    """Values for an attribute, a harmless one first."""
    if kind.startswith("list("):
        inner = settings_of(kind[5:-1], allowed, None)
        one, two = inner[0], inner[1 % len(inner)]
        made = [(one,), (one, one), (), (one, two), (one,) * 3, (one,) * 9, *((each,) for each in inner[1:8])]
        made += [(one, each) for each in inner[2:8]]
        return tuple(dict.fromkeys(each for each in made if len(each) >= (minimum or 0)))
    if allowed is not None:
        return tuple(allowed)
    known: dict[str, tuple[Any, ...]] = {
        "int": (4, 1, 2, 0, -1, 3, 7, 16, 100, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 62, -(1 << 63)),
        "float": (1.0, 0.0, 0.5, -1.0, 2.0, 1e-38, 3e38, float("inf"), float("-inf"), float("nan")),
        "bool": (True, False),
        "string": ("", "a", "12", "x" * 5000, "a,b", "/", "SAME"),
        "shape": ((), (1,), (2, 3), (0,), None, (-1, 2), (1 << 40, 0), (4, 4)),
        "type": (),
    }
    values = known.get(kind, ())
    if minimum is not None:
        values = tuple(dict.fromkeys(max(each, minimum) for each in values))
    return values
