"""Symbolic values that calls give: their results, objects, statuses and resources; and what conditions ask of them."""

from __future__ import annotations

from dataclasses import dataclass

from faultlens.custom_op.check.interpret.symbols import Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Result(Symbol):
    """What a call gives that is not interpreted. A method has its object as first argument."""

    function: str
    arguments: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MaybeNull(Symbol):
    """The result of a function that may give nullptr."""

    function: str
    arguments: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ViewExpression(Symbol):
    """What Eigen makes of a view."""

    view: Symbol
    arguments: tuple[Symbol, ...]


# --------------------------------------------------------------------------------------------- objects


@dataclass(frozen=True, slots=True, eq=False)
class Object(Symbol):
    """An object of a class, made of arguments."""

    class_name: str
    arguments: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Braces(Symbol):
    """{a, b}."""

    values: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pair(Symbol):
    first: Symbol
    second: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Field(Symbol):
    """object.name."""

    object: Symbol
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Item(Symbol):
    """An item of a range that is no known buffer."""

    range: Symbol
    index: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Lambda(Symbol):
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class InputList(Symbol):
    """OpInputList."""

    name: str


# -------------------------------------------------------------------------------- statuses and resources


@dataclass(frozen=True, slots=True, eq=False)
class Status(Symbol):
    """What a function says of its success; `result` is what it has allocated or found, if it has."""

    function: str
    result: Symbol | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ErrorStatus(Symbol):
    """errors::InvalidArgument(…)."""


@dataclass(frozen=True, slots=True, eq=False)
class SuccessStatus(Symbol):
    """OkStatus()."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextStatus(Symbol):
    """ctx->status()."""


@dataclass(frozen=True, slots=True, eq=False)
class Guard(Symbol):
    """An object that gives back what it was made of."""

    values: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lock(Symbol):
    """An object that holds a mutex."""

    mutex: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Thread(Symbol):
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class File(Symbol):
    place: int
    arguments: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ResourceReference(Symbol):
    """From LookupResource."""

    place: int


@dataclass(frozen=True, slots=True, eq=False)
class AllocatedBytes(Symbol):
    """The size of memory from malloc."""

    bytes: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class ElementCount(Symbol):
    """As much as std::copy copies, in elements."""

    count: Symbol


# ------------------------------------------------------------------------------------------ conditions


@dataclass(frozen=True, slots=True, eq=False)
class Ok(Symbol):
    """status.ok()."""

    status: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Survived(Symbol):
    """A condition that a CHECK of TensorFlow itself demanded."""

    condition: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Runs(Symbol):
    """The body of a loop runs."""

    counter: Symbol
    limit: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Switched(Symbol):
    """switch (value)."""

    value: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class Whole(Symbol):
    """A condition speaks of all of a tensor: a function that is not interpreted was given it."""

    tensor: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class DataOf(Symbol):
    """A condition speaks of all of a tensor's data."""

    tensor: Symbol


ERROR = ErrorStatus()
SUCCESS = SuccessStatus()
CONTEXT_STATUS = ContextStatus()
