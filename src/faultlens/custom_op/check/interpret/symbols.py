"""Symbolic values: what an expression stands for, told by where it comes from. Equal where the values are.

Here: constants, names and operations. `buffer_symbols` has memory and what is asked of it, `call_symbols` what calls
give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard, TypeVar

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
Made = TypeVar("Made")


class _Interned(type):
    """Hash consing: values that are made alike are one object, so that they compare and hash by identity."""

    made: ClassVar[dict[tuple[object, ...], Any]] = {}

    def __call__(cls: type[Made], *args: Any, **named: Any) -> Made:
        key = (cls, *args)
        known: Made | None = _Interned.made.get(key) if not named else None
        if known is None:
            value = type.__call__(cls, *args, **named)
            known = _Interned.made.setdefault((cls, *value.fields()), value)
            if not named:
                _Interned.made[key] = known  # the same without the defaults
        return known


@dataclass(frozen=True, slots=True, eq=False)
class Symbol(metaclass=_Interned):
    """A symbolic value. Its fields are names, numbers, other symbolic values, or tuples of them."""

    def operands(self) -> Iterator[Symbol]:
        """The symbolic values that it is directly made of."""
        for value in self.fields():
            if isinstance(value, Symbol):
                yield value
            elif isinstance(value, tuple):
                yield from value

    def names(self) -> Iterator[str]:
        """The names and texts among its own fields."""
        return (value for value in self.fields() if isinstance(value, str))

    def map(self, change: Callable[[Symbol], Symbol]) -> Symbol:
        """The same, made of other operands."""
        return type(self)(*(_mapped(value, change) for value in self.fields()))

    def fields(self) -> Iterator[object]:
        names: tuple[str, ...] = self.__match_args__
        return (getattr(self, name) for name in names)


def _mapped(value: object, change: Callable[[Symbol], Symbol]) -> object:
    if isinstance(value, Symbol):
        return change(value)
    return tuple(map(change, value)) if isinstance(value, tuple) else value


# ------------------------------------------------------------------------------------------ constants


@dataclass(frozen=True, slots=True, eq=False)
class Unknown(Symbol):
    """Nothing is known of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Null(Symbol):
    """nullptr."""


@dataclass(frozen=True, slots=True, eq=False)
class Context(Symbol):
    """The OpKernelContext, OpKernelConstruction or InferenceContext."""


@dataclass(frozen=True, slots=True, eq=False)
class This(Symbol):
    """The object whose method is interpreted."""


@dataclass(frozen=True, slots=True, eq=False)
class Int(Symbol):
    value: int


@dataclass(frozen=True, slots=True, eq=False)
class Float(Symbol):
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Bool(Symbol):
    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class String(Symbol):
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Char(Symbol):
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class SizeOf(Symbol):
    """sizeof(T), as it is written."""

    text: str


UNKNOWN = Unknown()
NULL = Null()
CONTEXT = Context()
THIS = This()
ZERO = Int(0)
ONE = Int(1)
TRUE, FALSE = Bool(True), Bool(False)


def number(value: int) -> Int:
    return Int(value)


# ---------------------------------------------------------------------------------------------- names


@dataclass(frozen=True, slots=True, eq=False)
class Name(Symbol):
    """A name that nothing is known of."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Param(Symbol):
    """A parameter of the function that is interpreted."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Attr(Symbol):
    """An attribute of the op; "?" where its name is not known."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Symbol):
    """A local variable of its own, whatever its value."""

    name: str
    place: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Varying(Symbol):
    """A variable that a loop changes, or that differs between joined paths."""

    name: str
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Loop(Symbol):
    """A loop's counter: from `start` up to, without, `limit`."""

    name: str
    place: int
    start: Symbol
    limit: Symbol
    step: int


@dataclass(frozen=True, slots=True, eq=False)
class Persistent(Symbol):
    """Storage that outlives the call."""

    name: str
    storage: ClassVar[str]


@dataclass(frozen=True, slots=True, eq=False)
class Member(Persistent):
    storage: ClassVar[str] = "member"


@dataclass(frozen=True, slots=True, eq=False)
class Static(Persistent):
    storage: ClassVar[str] = "static"


@dataclass(frozen=True, slots=True, eq=False)
class Global(Persistent):
    storage: ClassVar[str] = "global"


# ------------------------------------------------------------------------------------------ operations


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Symbol):
    """left + right, left < right, left && right …"""

    sign: str
    left: Symbol
    right: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Not(Symbol):
    value: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Negative(Symbol):
    value: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Unsigned(Symbol):
    """Data in an unsigned number."""

    value: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Symbol):
    condition: Symbol
    then: Symbol
    otherwise: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Limited(Symbol):
    """std::min, std::max, std::clamp: `function` is "min", "max" or "clamp"."""

    function: str
    values: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Product(Symbol):
    """Factors in one order: an atom of a linear combination."""

    factors: tuple[Symbol, ...]


def is_binary(symbol: Symbol, *signs: str) -> TypeGuard[Binary]:
    return isinstance(symbol, Binary) and symbol.sign in signs
