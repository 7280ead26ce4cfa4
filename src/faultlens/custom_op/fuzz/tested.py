"""What TensorFlow says of the ops of a library: how they are called, and for what there are kernels."""

from __future__ import annotations

import keyword
from typing import Any

import msgspec

from faultlens.op_model.arrays import DTYPES
from faultlens.op_model.op_definition import AttributeDefinition, Definition, Input

CPU, XLA = "CPU", "XLA_CPU_JIT"
# Types that most kernels are written for come first.
COMMON = ("float32", "int32", "int64", "float64", "string", "bool", "uint8", "int8", "float16", "bfloat16")
ALL = tuple(dict.fromkeys((*COMMON, *(name for name in DTYPES if "4" not in name[-2:] and "float8" not in name))))


class Bounds(msgspec.Struct, frozen=True):
    """What an attribute may be."""

    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None


class Kernel(msgspec.Struct, frozen=True):
    device: str
    types: dict[str, tuple[str, ...]] = {}  # of the attributes that it is made for


class OpUnderTest(msgspec.Struct, frozen=True):
    definition: Definition
    outputs: tuple[Input, ...] = ()
    bounds: dict[str, Bounds] = {}
    kernels: tuple[Kernel, ...] = ()
    stateful: bool = False
    gradient: bool = False

    @property
    def name(self) -> str:
        return self.definition.op

    def attribute(self, name: str) -> AttributeDefinition:
        return next(each for each in self.definition.attributes if each.name == name)

    def dtypes(self, attribute: str) -> tuple[str, ...]:
        """That the op allows for a type, and that there is a CPU kernel for, the common ones first."""
        allowed = self.bounds[attribute].allowed if attribute in self.bounds else None
        kernels = [each for each in self.kernels if each.device == CPU]
        made_for = {name for each in kernels for name in each.types.get(attribute, ALL)}
        return tuple(name for name in ALL if name in made_for and (allowed is None or name in allowed))

    @property
    def told_by_inputs(self) -> frozenset[str]:
        """Attributes that follow from the inputs."""
        names = (
            name
            for each in self.definition.inputs
            for name in (each.type_attribute, each.list_attribute, each.number_attribute)
        )
        return frozenset(name for name in names if name)

    @property
    def has_cpu_kernel(self) -> bool:
        return any(each.device == CPU for each in self.kernels)

    @property
    def has_xla_kernel(self) -> bool:
        return any(each.device == XLA for each in self.kernels)


def ops_of(told: Any) -> tuple[OpUnderTest, ...]:
    ops = msgspec.convert(told, tuple[OpUnderTest, ...])
    return tuple(each for each in ops if each.definition.function and _speaks_python(each.definition))


def _speaks_python(definition: Definition) -> bool:
    """All names are emitted as they are: they must be names and nothing else."""
    names = [definition.op, *(each.name for each in definition.inputs), *(each.name for each in definition.attributes)]
    return all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
