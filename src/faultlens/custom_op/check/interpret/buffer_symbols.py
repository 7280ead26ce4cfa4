"""Symbolic values of memory: tensors and other buffers, access to them, and what they say of themselves.

The classes come in families that rules ask for as a whole: `Tensor` and `Memory` (both are a `Buffer`), `Access` to a
buffer, and `Property` of a tensor or container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from faultlens.custom_op.check.interpret.symbols import Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Buffer(Symbol):
    """Memory with elements."""


@dataclass(frozen=True, slots=True, eq=False)
class Tensor(Buffer):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Input(Tensor):
    index: int | str | Symbol  # its number, its name, or what computes its number


@dataclass(frozen=True, slots=True, eq=False)
class Output(Tensor):
    index: int | str | Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Temporary(Tensor):
    """A tensor from allocate_temp, or one that is declared."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Listed(Tensor):
    """Any tensor of an input list."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Memory(Buffer):
    """Memory that is no tensor: made at a place in the source, with elements of a type."""

    place: int
    type: str


@dataclass(frozen=True, slots=True, eq=False)
class Array(Memory):
    size: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Heap(Memory):
    """From new or malloc."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector(Memory):
    """A container. `changed` is where it was last made longer or shorter."""

    changed: int | None = None

    def changed_at(self, place: int) -> Vector:
        return Vector(self.place, self.type, place)


# ----------------------------------------------------------------------------------- access to buffers


@dataclass(frozen=True, slots=True, eq=False)
class Access(Symbol):
    buffer: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class View(Access):
    """x.flat<T>(): an Eigen view. `rank` is None where the method takes any."""

    method: str
    type: str
    rank: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Pointer(Access):
    offset: Symbol
    type: str


@dataclass(frozen=True, slots=True, eq=False)
class Element(Access):
    index: Symbol
    type: str


@dataclass(frozen=True, slots=True, eq=False)
class Retyped(Symbol):
    """The buffer of a pointer that was cast to elements of another size."""

    buffer: Symbol
    pointer: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Text(Symbol):
    """The characters of a string in a tensor."""

    element: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Indices(Symbol):
    """x(i, j)."""

    values: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ExtremeIndex(Symbol):
    """Where std::max_element finds something between two positions."""

    function: str
    begin: Symbol
    end: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class AddressOfName(Symbol):
    """&variable, or &this.member."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class AddressOf(Symbol):
    value: Symbol


# ------------------------------------------------------------------ properties of tensors and containers


@dataclass(frozen=True, slots=True, eq=False)
class Property(Symbol):
    """What a tensor or a container says of itself."""

    subject: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Rank(Property):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Dim(Property):
    axis: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class ViewDim(Property):
    """A dimension of a view whose shape differs from the tensor's."""

    method: str
    axis: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class NumElements(Property):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class ByteSize(Property):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Shape(Property):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class DType(Property):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Length(Property):
    """v.size()."""


SIZES = (Dim, NumElements, ByteSize, Shape, Length, ViewDim)


@dataclass(frozen=True, slots=True, eq=False)
class ShapeOf(Symbol):
    """TensorShape({a, b})."""

    dims: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Forwarded(Symbol):
    """Stands for the inputs whose buffers an output may take over."""

    output: Symbol


def is_tensor(symbol: Symbol) -> TypeGuard[Tensor]:
    return isinstance(symbol, Tensor)


def buffer_of(symbol: Symbol) -> Buffer | None:
    """What memory a view, pointer or element belongs to."""
    if isinstance(symbol, Buffer):
        return symbol
    if isinstance(symbol, Access):
        inner = symbol.buffer.buffer if isinstance(symbol.buffer, Retyped) else symbol.buffer
        return inner if isinstance(inner, Buffer) else None
    return None


def is_input_element(symbol: Symbol) -> TypeGuard[Element]:
    """A value that whoever calls the op gives."""
    return isinstance(symbol, Element) and isinstance(symbol.buffer, Input)
