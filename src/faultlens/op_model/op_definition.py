"""How an op of the program's TensorFlow is called, asked of that TensorFlow itself."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Any

import msgspec

DESCRIBE = Path(__file__).parent / "guest" / "describe.py"  # runs in the user's Python


class Input(msgspec.Struct, frozen=True):
    name: str
    dtype: str | None = None  # where it is always the same
    type_attribute: str | None = None  # the attribute that names its type
    list_attribute: str | None = None  # it is a list, whose types this attribute names
    number_attribute: str | None = None  # it is a list of one type, whose length this attribute gives
    by_reference: bool = False


class AttributeDefinition(msgspec.Struct, frozen=True):
    name: str
    kind: str  # "int", "list(shape)", …
    has_default: bool = False
    default: Any = None


class Definition(msgspec.Struct, frozen=True):
    op: str
    inputs: tuple[Input, ...]
    attributes: tuple[AttributeDefinition, ...]
    function: str | None = None  # in tf.raw_ops, or in the library; None: there is no Python function for it
    library: str | None = None  # the custom library that registers it
    parameters: tuple[str, ...] = ()  # of the function, in order


def decode(answer: str) -> Definition | None:
    """What guest/describe.py printed. None: this TensorFlow has no such op, and neither has any of the libraries."""
    try:
        definition = msgspec.json.decode(answer, type=Definition | None)
    except msgspec.MsgspecError:
        return None
    return definition if definition and _speaks_python(definition) else None


def _speaks_python(definition: Definition) -> bool:
    """All names are emitted as they are: they must be names and nothing else."""
    names = [definition.op, definition.function or "_", *definition.parameters]
    names += [each.name for each in definition.inputs] + [each.name for each in definition.attributes]
    return all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
