"""Tensors as Python text: what a script says to make the tensor that a kernel was given. Pure."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from faultlens.records.crash import Tensor

Value = int | float | complex | bool | bytes

MAX_RANK = 254
INLINE_VALUES = 24
INLINE_STRINGS = 400


class DType(NamedTuple):
    """A type of TensorFlow's: how its bytes are read, and how a script gets a tensor of it."""

    code: str  # of the struct module, one value
    numpy: str  # in the header of a .npy file
    made: Literal["direct", "cast", "bitcast"] = "direct"
    via: str = ""  # the type whose values are written, where it cannot be made directly


_PLAIN = {
    "float16": DType("e", "<f2"),
    "float32": DType("f", "<f4"),
    "float64": DType("d", "<f8"),
    "int8": DType("b", "|i1"),
    "int16": DType("h", "<i2"),
    "int32": DType("i", "<i4"),
    "int64": DType("q", "<i8"),
    "uint8": DType("B", "|u1"),
    "uint16": DType("H", "<u2"),
    "uint32": DType("I", "<u4"),
    "uint64": DType("Q", "<u8"),
    "bool": DType("?", "|b1"),
    "complex64": DType("2f", "<c8"),
    "complex128": DType("2d", "<c16"),
}


def _as(via: str, made: Literal["cast", "bitcast"]) -> DType:
    return _PLAIN[via]._replace(made=made, via=via)


DTYPES = {
    **_PLAIN,
    "string": DType("", ""),
    "bfloat16": DType("H", "<f4", "cast", "float32"),
    "int4": _as("int8", "cast"),
    "uint4": _as("uint8", "cast"),
    "qint8": _as("int8", "bitcast"),
    "quint8": _as("uint8", "bitcast"),
    "qint16": _as("int16", "bitcast"),
    "quint16": _as("uint16", "bitcast"),
    "qint32": _as("int32", "bitcast"),
    **{
        name: _as("uint8", "bitcast")
        for name in (
            *("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"),
            *("float8_e4m3", "float8_e3m4", "float8_e8m0fnu"),
        )
    },
}
# What tf.constant makes of a Python value by itself.
_NATURAL = {"float32": float, "int32": int, "bool": bool, "complex128": complex, "string": bytes}
_FLOATING = {"float16": "<e", "float32": "<f"}


def zero(dtype: str) -> Value:
    return _number(dtype, 0)


def one(dtype: str) -> Value:
    return _number(dtype, 1)


def _number(dtype: str, number: int) -> Value:
    if dtype == "string":
        return b"1" if number else b""
    if dtype == "bool":
        return bool(number)
    if dtype.startswith("complex"):
        return complex(number)
    return float(number) if dtype in ("float16", "bfloat16", "float32", "float64") else number


class Array(NamedTuple):
    """A tensor to be made. Without `values` all its elements are `fill`, or random."""

    dtype: str
    shape: tuple[int, ...]
    values: tuple[Value, ...] | None = None
    fill: Value | Literal["random"] = 0
    recorded: bool = True  # the contents are those that were recorded
    variable: bool = False  # a tf.Variable holds it, and the op is given its handle

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Made(NamedTuple):
    """An expression, and the file it loads, if any."""

    text: str
    array: bytes | None = None  # contents of the .npy file


def from_tensor(tensor: Tensor) -> Array | None:
    """None: a tensor of this type cannot be made from what is known of it."""
    if tensor.dtype not in DTYPES:
        return None
    shape = tensor.shape
    if len(shape) > MAX_RANK or not all(0 <= size < 1 << 63 for size in shape):
        return None
    values = values_of(tensor)
    if values is None:
        return Array(tensor.dtype, shape, fill=zero(tensor.dtype), recorded=math.prod(shape) == 0)
    return simplest(Array(tensor.dtype, shape, values))


def simplest(array: Array) -> Array:
    """Equal values are told once."""
    values = array.values
    if values and all(_same(value, values[0]) for value in values):
        return array._replace(values=None, fill=values[0])
    return array


def expression(array: Array, file: str) -> Made:
    """The text that makes the tensor; `file` is the name of the array beside the script, if there is to be one."""
    if array.variable:
        made = expression(array._replace(variable=False), file)
        return made._replace(text=f"tf.Variable({made.text}).handle")
    kind = DTYPES[array.dtype]
    if kind.made != "direct" and array.fill != "random":
        inner = expression(array._replace(dtype=kind.via), file)
        return inner._replace(text=f"tf.{kind.made}({inner.text}, tf.{array.dtype})")
    if array.values is not None and _written_out(array):
        nested = _nested(array.values, array.shape, array.dtype)
        return Made(f"tf.constant({nested}{_typed(array)})")
    if array.values is not None:
        return Made(f"np.load({file!r})", npy(array))
    return Made(_filled(array))


def npy(array: Array) -> bytes:
    """The file that numpy.load reads."""
    assert array.values is not None
    kind = DTYPES[array.dtype]
    header = f"{{'descr': {kind.numpy!r}, 'fortran_order': False, 'shape': {tuple(array.shape)!r}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    flat: list[Value] = []
    for value in array.values:
        flat += (value.real, value.imag) if isinstance(value, complex) else (value,)
    body = struct.pack(f"<{len(flat)}{kind.code[-1]}", *flat)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def shape_text(shape: Sequence[int | None]) -> str:
    """ "[1] * 253 + [2]" says more than 254 numbers."""
    runs: list[tuple[int | None, int]] = []
    for size in shape:
        if runs and runs[-1][0] == size:
            runs[-1] = size, runs[-1][1] + 1
        else:
            runs.append((size, 1))
    if len(shape) <= 8 or len(runs) > 3:
        return repr(list(shape))
    return " + ".join(f"[{size!r}] * {count}" if count > 1 else f"[{size!r}]" for size, count in runs)


def _written_out(array: Array) -> bool:
    if array.dtype == "string":
        return True
    return array.size <= INLINE_VALUES


def _filled(array: Array) -> str:
    shape, dtype = shape_text(array.shape), array.dtype
    if array.fill == "random":
        return _random(shape, dtype)
    if dtype == "string" or not array.shape:
        given = f", shape={shape}" if array.shape else ""
        return f"tf.constant({_scalar(array.fill, dtype)}{_typed(array)}{given})"
    typed = "" if dtype == "float32" else f", tf.{dtype}"
    if array.fill in (0, 1) and str(array.fill)[0] != "-":
        return f"tf.{'ones' if array.fill else 'zeros'}({shape}{typed})"
    return f"tf.constant({_scalar(array.fill, dtype)}, tf.{dtype}, {shape})"


def _random(shape: str, dtype: str) -> str:
    if dtype == "string":
        return f"tf.strings.as_string(tf.random.stateless_uniform({shape}, seed=[1, 2]))"
    if dtype in ("float16", "float32", "float64", "bfloat16"):
        typed = "" if dtype == "float32" else f", dtype=tf.{dtype}"
        return f"tf.random.stateless_uniform({shape}, seed=[1, 2]{typed})"
    if dtype in ("int32", "int64"):
        return f"tf.random.stateless_uniform({shape}, [1, 2], 0, 100, tf.{dtype})"
    inner = f"tf.random.stateless_uniform({shape}, [1, 2], 0, 2, tf.int32)"
    kind = DTYPES[dtype]
    if kind.made == "bitcast":
        return f"tf.bitcast(tf.cast({inner}, tf.{kind.via}), tf.{dtype})"
    return f"tf.cast({inner}, tf.{dtype})"


def _typed(array: Array) -> str:
    value = array.values[0] if array.values else array.fill
    natural = _NATURAL.get(array.dtype)
    if natural is not None and (array.values is None or array.values) and type(value) is natural:
        return ""
    return f", tf.{array.dtype}"


def _nested(values: Sequence[Value], shape: tuple[int, ...], dtype: str) -> str:
    if not shape:
        return _scalar(values[0], dtype)
    step = len(values) // shape[0] if shape[0] else 0
    parts = (_nested(values[i * step : (i + 1) * step], shape[1:], dtype) for i in range(shape[0]))
    return f"[{', '.join(parts)}]"


def _scalar(value: Value | str, dtype: str) -> str:
    if isinstance(value, complex):
        if math.isfinite(value.real) and math.isfinite(value.imag):
            return repr(value)
        return f"complex({_real(value.real, dtype)}, {_real(value.imag, dtype)})"
    return _real(value, dtype) if isinstance(value, float) else repr(value)


def _real(value: float, dtype: str) -> str:
    if not math.isfinite(value):
        return f"float({str(value)!r})"
    if dtype not in _FLOATING:
        return repr(value)
    # As few digits as tell it from its neighbours: 0.1, not 0.10000000149011612.
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack(_FLOATING[dtype], float(text)) == struct.pack(_FLOATING[dtype], value):
            return repr(float(text))
    return repr(value)


def values_of(tensor: Tensor) -> tuple[Value, ...] | None:
    """All of them, of a type in DTYPES; None where they were not kept, or do not fit the shape."""
    size = math.prod(tensor.shape)
    if size == 0:
        return None
    if tensor.dtype == "string":
        strings = tensor.strings
        return tuple(strings) if strings is not None and len(strings) == size <= INLINE_STRINGS else None
    code = DTYPES[tensor.dtype].code
    data = tensor.contents
    width = struct.calcsize(f"<{code}")
    if data is None or len(data) != size * width:
        return None
    if tensor.dtype == "bool":
        return tuple(byte != 0 for byte in data)
    if tensor.dtype == "bfloat16":  # the upper half of a float32
        return tuple(_decoded(b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)), "f"))
    return tuple(_decoded(data, code))


def _decoded(data: bytes, code: str) -> Iterator[Value]:
    for parts in struct.iter_unpack(f"<{code}", data):
        yield complex(*parts) if len(parts) == 2 else parts[0]


def _same(left: Value, right: Value) -> bool:
    return left == right and (not isinstance(left, float) or math.copysign(1, left) == math.copysign(1, float(right)))  # type: ignore[arg-type]
