"""Which C++ type a type of TensorFlow is, and what kind of number a C++ type holds."""

from __future__ import annotations

import re

# The name in REGISTER_OP -> the C++ type of the elements, as `tidy` writes it.
_ELEMENTS = {
    "float": "float", "float32": "float", "double": "double", "float64": "double", "int32": "int32", "int64": "int64",
    "uint8": "uint8", "int8": "int8", "int16": "int16", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
    "bool": "bool", "string": "tstring", "half": "half", "bfloat16": "bfloat16", "complex64": "complex64",
    "complex128": "complex128", "qint8": "qint8", "quint8": "quint8", "qint32": "qint32", "qint16": "qint16",
    "quint16": "quint16", "resource": "ResourceHandle", "variant": "Variant",
}  # fmt: skip
_SPELLINGS = {
    "int": "int32", "int32_t": "int32", "signed int": "int32", "signed": "int32", "long": "int64", "long int": "int64",
    "long long": "int64", "long long int": "int64", "int64_t": "int64", "ptrdiff_t": "int64", "ssize_t": "int64",
    "intptr_t": "int64", "Eigen::Index": "int64", "Eigen::DenseIndex": "int64", "unsigned": "uint32",
    "unsigned int": "uint32", "uint32_t": "uint32", "uint": "uint32", "unsigned long": "uint64",
    "unsigned long long": "uint64", "uint64_t": "uint64", "size_t": "uint64", "uintptr_t": "uint64", "short": "int16",
    "int16_t": "int16", "unsigned short": "uint16", "uint16_t": "uint16", "int8_t": "int8", "signed char": "int8",
    "uint8_t": "uint8", "unsigned char": "uint8", "string": "tstring", "std::string": "tstring", "tsl::tstring":
    "tstring", "Eigen::half": "half", "Eigen::bfloat16": "bfloat16", "std::complex<float>": "complex64",
    "std::complex<double>": "complex128", "float32": "float", "float64": "double", "_Bool": "bool",
    "DT_FLOAT": "float", "DT_DOUBLE": "double", "DT_INT32": "int32", "DT_INT64": "int64", "DT_UINT8": "uint8",
    "DT_INT8": "int8", "DT_INT16": "int16", "DT_UINT16": "uint16", "DT_UINT32": "uint32", "DT_UINT64": "uint64",
    "DT_BOOL": "bool", "DT_STRING": "tstring", "DT_HALF": "half", "DT_BFLOAT16": "bfloat16",
}  # fmt: skip
_REAL = ("float double int32 int64 uint8 int8 int16 uint16 uint32 uint64 half bfloat16").split()
_NUMBERS = [*_REAL, "complex64", "complex128", "qint8", "quint8", "qint32"]
_BYTES = {"float": 4, "double": 8, "int32": 4, "int64": 8, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "uint32": 4,
          "uint64": 8, "bool": 1, "half": 2, "bfloat16": 2, "complex64": 8, "complex128": 16, "char": 1}  # fmt: skip
KNOWN = frozenset(_ELEMENTS.values())
CONTAINERS = re.compile(r"(?:const\s+)?(?:\w+::)*(?:vector|InlinedVector|deque|FixedArray|valarray)\s*<")


def tidy(text: str) -> str:
    """One spelling for each type; others are left as they are."""
    text = re.sub(r"\b(?:const|volatile|struct|typename|static|constexpr|register|inline)\b", " ", text)
    text = re.sub(
        r"^(?:::)?(?:tensorflow|std)::(?=u?int|size_t|ptrdiff_t|t?string$|bfloat16|float|double)", "", text.strip()
    )
    text = " ".join(text.replace("&", " ").split())
    return _SPELLINGS.get(text, text)


def of_attribute(text: str) -> frozenset[str] | None:
    """The types that `{float, int32}` or `numbertype` allows; None: any."""
    text = text.strip()
    if text == "realnumbertype":
        return frozenset(_REAL)
    if text == "numbertype":
        return frozenset(_NUMBERS)
    if text.startswith("{"):
        types: set[str] = set()
        for name in re.findall(r"\w+", text.partition("}")[0]):
            inner = of_attribute(name) if name in ("realnumbertype", "numbertype") else None
            if inner is None and name not in _ELEMENTS:
                return None
            types |= inner or {_ELEMENTS[name]}
        return frozenset(types)
    return None


def size_of(type_: str) -> int | None:
    return 8 if "*" in type_ else _BYTES.get(tidy(type_))


def is_integer(type_: str) -> bool:
    return bool(re.fullmatch(r"u?int(?:8|16|32|64)|char", tidy(type_)))


def is_unsigned(type_: str) -> bool:
    return tidy(type_).startswith("uint")


def is_small_integer(type_: str) -> bool:
    """One in which a number of elements does not fit."""
    return tidy(type_) in ("int32", "uint32", "int16", "uint16", "int8", "uint8")


def is_plain(type_: str) -> bool:
    """A number or a pointer: not set to anything where it is only declared."""
    return type_.rstrip().endswith("*") or tidy(type_) in _BYTES
