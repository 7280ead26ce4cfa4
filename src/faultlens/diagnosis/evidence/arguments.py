"""What an op was given, argument by argument: the op's own names, the values, and how the user's line writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from faultlens.diagnosis.evidence import call_arguments
from faultlens.diagnosis.evidence.kernels import user_op
from faultlens.knowledge.op_arguments import Parameter, parameters
from faultlens.op_model.arrays import DTYPES, MAX_RANK, Value, values_of
from faultlens.records.crash import Attribute, Kernel, Tensor, Variable
from faultlens.records.diagnosis import Location

_READ = 1 << 12  # values of one input
_TELLING = frozenset({"int", "float", "bool", "string", "list", "list(int)", "list(float)", "shape", "list(shape)"})


class Argument(NamedTuple):
    """An input of the op."""

    name: str  # "seq_len_max"; "input 0" where the op is not TensorFlow's
    tensor: Tensor
    ranks: tuple[int, ...] = ()  # that TensorFlow accepts; nothing where any is, or where it is not known
    written: str = ""  # in the user's call

    @property
    def rank(self) -> int:
        return len(self.tensor.shape)

    @property
    def size(self) -> int | None:
        """How many elements; None for a shape that no tensor has."""
        shape = self.tensor.shape
        sound = len(shape) <= MAX_RANK and all(0 <= dimension < 1 << 63 for dimension in shape)
        return math.prod(shape) if sound else None

    @property
    def values(self) -> tuple[Value, ...]:
        """Of a small one whose contents were kept."""
        size = self.size
        if size is None or not 0 < size <= _READ or self.tensor.dtype not in DTYPES:
            return ()
        return values_of(self.tensor) or ()

    @property
    def integers(self) -> tuple[int, ...]:
        values = self.values
        return tuple(int(each) for each in values if isinstance(each, int)) if _is_integer(self.tensor.dtype) else ()

    @property
    def expression(self) -> str:
        """What stands for it in code: as the user wrote it, else its name."""
        return self.written or self.name.replace(" ", "_")


class Given(NamedTuple):
    op: str
    arguments: tuple[Argument, ...]
    settings: Mapping[str, Any]  # the attributes that hold numbers or words, without TensorFlow's own


def given(kernel: Kernel, sources: Mapping[str, str], location: Location | None) -> Given:
    op = user_op(kernel)
    names = list(_names(op, kernel))
    call = call_arguments.call_of(op, sources, location)
    defined = list(dict.fromkeys(parameter.name for parameter, _ in names if parameter))
    written = call_arguments.written(call, defined) if call else {}
    if call and not defined:  # an op of the user's own: known by what stands in the call
        names = [(None, text or name) for (_, name), text in zip_longest(names, call_arguments.names(call, len(names)))]
    arguments = [
        Argument(name, tensor, parameter.ranks if parameter else (), written.get(name, ""))
        for (parameter, name), tensor in zip(names, kernel.inputs, strict=False)
        if tensor is not None
    ]
    counted = {parameter.length for parameter, _ in names if parameter}  # how long a list is, is no size of the user's
    settings = {
        name: attribute.value
        for name, attribute in kernel.attributes.items()
        if not name.startswith("_") and attribute.kind in _TELLING and name not in counted
    }
    return Given(op, tuple(arguments), settings)


def as_written(
    op: str | None, sources: Mapping[str, str], location: Location | None, variables: Iterable[Variable]
) -> Given | None:
    """Where no kernel was in flight: the numbers that stand in the user's call."""
    call = call_arguments.call_of(op, sources, location)
    if call is None and (made := call_arguments.dataset_call(op, sources)):
        call, location = made
    if call is None or location is None or op is None:
        return None
    known = {each.name: value for each in variables if (value := number_of(each)) is not None}
    return Given(op, (), call_arguments.numbers(call, sources, location, known))


def number_of(variable: Variable) -> object | None:
    """The number, or the list of them; None of anything else."""
    if variable.numbers is not None:
        return list(variable.numbers)
    return variable.value if variable.type in ("int", "float") else None


def input_names(kernel: Kernel) -> list[str]:
    """One for each recorded input."""
    return [name for (_, name), _ in zip(_names(user_op(kernel), kernel), kernel.inputs, strict=False)]


def _names(op: str, kernel: Kernel) -> Iterator[tuple[Parameter | None, str]]:
    """For each input in turn. Rewritten ops may have more inputs than the op that the user wrote."""
    number = 0
    for parameter in parameters(op):
        length = _length(parameter, kernel.attributes)
        if length is None:
            yield parameter, parameter.name
            number += 1
            continue
        for index in range(length):
            yield parameter, f"{parameter.name}[{index}]"
            number += 1
    while number < len(kernel.inputs):
        yield None, f"input {number}"
        number += 1


def _length(parameter: Parameter, attributes: Mapping[str, Attribute]) -> int | None:
    """Of a list; None of what is none, or where it is not known."""
    attribute = attributes.get(parameter.length or "")
    value = attribute.value if attribute else None
    if isinstance(value, list):
        return len(value)
    return value if isinstance(value, int) and 0 <= value < 10_000 else None


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))
