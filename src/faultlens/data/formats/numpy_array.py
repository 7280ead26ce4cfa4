"""Is an array in NumPy's format whole, and is every number in it finite? Read as a stream, in blocks."""

from __future__ import annotations

import ast
import math
import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from faultlens.data.formats.reading import CHUNK, Read, Spot, numbers_are
from faultlens.data.look import Look
from faultlens.data.missing import EXTRA, not_there

if TYPE_CHECKING:
    import numpy

MAGIC = b"\x93NUMPY"
MAX_HEADER = 1 << 20  # bytes; records of a thousand fields fit
MAX_DIMENSIONS = 64
BLOCK = 8 << 20
ROW = "shape of a row"
_TYPE = re.compile(r"[<>|=]?([?biufcmMOSUV])(\d{0,9})(?:\[[^\]]{0,40}\])?")
_NAMES = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
_LONG = re.compile(r"(\d)L\b")  # how Python 2 wrote numbers


class Header(NamedTuple):
    descr: Any
    shape: tuple[int, ...]
    fortran: bool
    item: int | None  # bytes of one element; None where the type is unknown

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class HeaderError(ValueError):
    """In words."""


def check_array(read: Read, look: Look, spot: Spot, group: str) -> Header | None:
    """Everything about the arrays in the stream, mostly one: the first is returned. `group`: who should be alike."""
    begin = read(8)
    if not begin:
        look.flaw("empty", "it is empty", **spot.keywords())
        return None
    if begin[:6] != MAGIC[: len(begin)]:
        look.flaw("magic", "it does not begin like an array of NumPy", **spot.keywords())
        return None
    first = _check_one(begin, read, look, spot, group)
    header = first
    while header is not None and _is_known(header) and (begin := read(8)):
        if not begin.startswith(MAGIC):
            extra = len(begin) + len(read(CHUNK))
            more = "more than " if extra > CHUNK else ""
            look.flaw("trailing", f"{more}{min(extra, CHUNK)} bytes follow its last element", **spot.keywords())
            break
        header = _check_one(begin, read, look, spot, f"{group} further")  # `numpy.save` was called again
    return first


def _check_one(begin: bytes, read: Read, look: Look, spot: Spot, group: str) -> Header | None:
    """None where nothing can be said about what follows."""
    where = spot.keywords()
    try:
        header = _header(begin, read)
    except EOFError:
        look.flaw("truncated", "it ends within its header", **where)
        return None
    except HeaderError as error:
        look.flaw("structure", f"its header {error}", **where)
        return None
    look.trait("dtype", _dtype(header.descr), group=group, share=0.5, **where)
    # Numbers of samples differ by nature; sizes of what was not brought into one shape do so in a part of the files.
    shape = str(header.shape[1:]) if header.shape else "no dimensions"
    look.trait(ROW, shape, group=group, share=0.9, **where)
    if _has(header.descr, "O"):
        look.flaw("unsupported", "it holds Python objects, which are not loaded", **where)
    elif header.item is None:
        look.flaw("unsupported", f"its type {_told(header.descr)} is unknown", **where)
    else:
        return header if _check_values(header, read, look, spot) else None
    return header


def _is_known(header: Header) -> bool:
    return header.item is not None and not _has(header.descr, "O")


def _check_values(header: Header, read: Read, look: Look, spot: Spot) -> bool:
    """Whether all of them are there."""
    item = header.item or 0
    expected = header.elements * item
    values = _Finite(header)
    if values.why_not:
        look.unchecked("NaN and infinity in arrays", values.why_not, values.advice)
    step = max(BLOCK // item, 1) * item if item else BLOCK
    done = 0
    while done < expected and (block := _whole(read, min(step, expected - done))):
        values.add(block)
        done += len(block)
    if done < expected:
        reason = f"it ends after {done} of the {expected} bytes that its shape needs"
        look.flaw("truncated", reason, **spot.keywords())
    if values.bad:
        first = f"the first at {values.first_index()}"
        look.flaw("not-finite", f"{numbers_are(values.bad)} NaN or infinite, {first}", **spot.keywords())
    return done == expected


# --------------------------------------------------------------------------------------------- the header


def _header(begin: bytes, read: Read) -> Header:
    if len(begin) < 8:
        raise EOFError
    major, minor = begin[6], begin[7]
    if major not in (1, 2, 3) or minor:
        raise HeaderError(f"is of the unknown version {major}.{minor}")
    width = 2 if major == 1 else 4
    length = int.from_bytes(_exactly(read, width), "little")
    if length > MAX_HEADER:
        raise HeaderError(f"would be {length} bytes long")
    raw = _exactly(read, length)
    contents = _literal(raw.decode("latin-1" if major < 3 else "utf-8", "replace"))
    if not isinstance(contents, dict) or not {"descr", "shape", "fortran_order"} <= contents.keys():
        raise HeaderError("does not say type, shape and order")
    shape, fortran = contents["shape"], contents["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 1 << 63 for size in shape):
        raise HeaderError("has no valid shape")
    if len(shape) > MAX_DIMENSIONS:
        raise HeaderError(f"speaks of {len(shape)} dimensions")
    if not isinstance(fortran, bool):
        raise HeaderError("has no valid order")
    return Header(contents["descr"], shape, fortran, _item_size(contents["descr"]))


def _literal(text: str) -> object:
    """A bounded Python literal; nothing is evaluated."""
    for attempt in (text, _LONG.sub(r"\1", text)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about odd escapes in damaged text
                return ast.literal_eval(attempt.strip())
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    raise HeaderError("is no Python literal")


def _item_size(descr: Any, depth: int = 0) -> int | None:
    """Bytes of one element, of plain types, records and fields that are arrays."""
    if depth > 16:
        return None
    if isinstance(descr, str):
        match = _TYPE.fullmatch(descr)
        if match is None:
            return None
        return 1 if match[1] == "?" else int(match[2] or 0) * (4 if match[1] == "U" else 1)
    if isinstance(descr, tuple) and len(descr) == 2:
        item, count = _item_size(descr[0], depth + 1), _count(descr[1])
        return None if item is None or count is None else item * count
    if isinstance(descr, list):
        total = 0
        for field in descr:
            if not isinstance(field, tuple) or len(field) not in (2, 3):
                return None
            size = _item_size(field[1] if len(field) == 2 else (field[1], field[2]), depth + 1)
            if size is None:
                return None
            total += size
        return total
    return None


def _count(shape: object) -> int | None:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    return math.prod(sizes) if all(type(size) is int and size >= 0 for size in sizes) else None


def _has(descr: Any, kinds: str, depth: int = 0) -> bool:
    """Elements of one of these kinds: "O" for objects, "fc" for numbers that may be NaN."""
    if isinstance(descr, str):
        return descr.lstrip("<>|=").startswith(tuple(kinds))
    fields = descr if isinstance(descr, (list, tuple)) and depth < 16 else ()
    if isinstance(descr, list):
        fields = [field[1] for field in descr if isinstance(field, tuple) and len(field) > 1]
    return any(_has(field, kinds, depth + 1) for field in fields)


def _told(descr: Any) -> str:
    text = descr if isinstance(descr, str) else repr(descr)
    return text[:200]


def _dtype(descr: Any) -> str:
    """As NumPy prints it: "float32" for "<f4", and ">f4"."""
    match = _TYPE.fullmatch(descr) if isinstance(descr, str) else None
    if match is None or descr[0] == ">" or match[1] not in "fiucb" or not match[2]:
        return _told(descr)
    return "bool" if match[0] == "|b1" else f"{_NAMES.get(match[1], 'int')}{8 * int(match[2])}"


def _exactly(read: Read, count: int) -> bytes:
    data = _whole(read, count)
    if len(data) < count:
        raise EOFError
    return data


def _whole(read: Read, count: int) -> bytes:
    """As many bytes as there are, however small the portions come."""
    data = read(count)
    while data and len(data) < count and (more := read(count - len(data))):
        data += more
    return data


# --------------------------------------------------------------------------------------------- the numbers


class _Finite:
    """Counts NaN and infinity over blocks. Where it cannot, `why_not` and `advice` say so."""

    def __init__(self, header: Header) -> None:
        self.bad = 0
        self._shape, self._fortran = header.shape, header.fortran
        self._seen = 0
        self._first = 0
        self._type = None
        self.why_not = self.advice = ""
        if not header.elements or not _has(header.descr, "fc"):
            return
        try:
            self._type = _type_with_floats(header)
        except ImportError as error:
            self.why_not, self.advice = not_there(error, "NumPy"), EXTRA
        else:
            self.why_not = "" if self._type is not None else "their type is not understood"

    def add(self, block: bytes) -> None:
        if self._type is None:
            return
        import numpy

        values = numpy.frombuffer(block[: len(block) // self._type.itemsize * self._type.itemsize], self._type)
        bad, first = not_finite(values)
        if bad and not self.bad:
            self._first = self._seen + first
        self.bad += bad
        self._seen += len(values)

    def first_index(self) -> list[int]:
        return index_in(self._shape, self._first, self._fortran)


def _type_with_floats(header: Header) -> numpy.dtype[Any] | None:
    import numpy

    descr = header.descr
    if isinstance(descr, tuple):  # an element that is an array: its first dimensions are those of the whole
        return None
    try:
        found = numpy.dtype(descr)
    except (TypeError, ValueError, SyntaxError, OverflowError, RecursionError):
        return None
    return found if found.itemsize and found.itemsize == header.item and _holds_floats(found) else None


def _holds_floats(dtype: numpy.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return _holds_floats(dtype.subdtype[0])
    if dtype.fields is not None:
        return any(_holds_floats(field[0]) for field in dtype.fields.values())
    return dtype.kind in "fc"


def not_finite(values: numpy.ndarray[Any, Any]) -> tuple[int, int]:
    """How many elements hold NaN or infinity, and the place of the first in C order. Records by their fields."""
    import numpy

    if values.dtype.names is not None:
        found = [not_finite(values[name]) for name in values.dtype.names]
        counts = [(bad, first // max(values[name].size // max(values.size, 1), 1))
                  for (bad, first), name in zip(found, values.dtype.names, strict=True) if bad]  # fmt: skip
        return sum(bad for bad, _ in counts), min((first for _, first in counts), default=0)
    if values.dtype.kind not in "fc" or not values.size:
        return 0, 0
    finite = numpy.isfinite(values)
    bad = values.size - int(numpy.count_nonzero(finite))
    return (bad, int(numpy.argmin(finite))) if bad else (0, 0)


def index_in(shape: tuple[int, ...], flat: int, fortran: bool = False) -> list[int]:
    """Which element is counted by this number."""
    index = []
    for size in shape if fortran else reversed(shape):
        flat, remainder = divmod(flat, max(size, 1))
        index.append(remainder)
    return index if fortran else index[::-1]
