"""What a format is: how much it needs, what it writes, and how that is proved to be right."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultlens.model_files.manifest import Format as FormatName
from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.target import Target
from faultlens.saving.values import Values, size_of
from faultlens.text.sizes import MIB

OVERHEAD = MIB  # bytes on disk besides the values of the variables


class Format(ABC):
    """One save in one format. `values` may hold the variables as they were at an earlier instant."""

    name: FormatName
    files = 1  # how many it makes
    extra_memory = 32 * MIB  # what writing takes besides the model
    notes: tuple[str, ...] = ()

    def __init__(self, subject: Any) -> None:
        self.subject = subject
        self.values = Values()

    def target(self, path: Path) -> Target:
        return Target(path)

    def variables(self) -> Iterator[Any]:
        return all_variables(self.subject)

    def size(self) -> int:
        """About how many bytes it will have."""
        return sum(map(size_of, self.variables())) + OVERHEAD

    @abstractmethod
    def write(self, path: Path) -> list[SavedVariable]:
        """Write it under this name. What is returned is checked by `verify`."""

    @abstractmethod
    def verify(self, path: Path, variables: list[SavedVariable]) -> int | None:
        """Read it back from the disk. Raises SaveError where it is not what was in memory. The CRC-32C of a file that
        was read whole is returned."""


def is_keras_model(subject: Any) -> bool:
    """Without importing a Keras that the program does not use."""
    for name in ("keras", "tf_keras"):
        model = getattr(getattr(sys.modules.get(name), "Model", None), "__mro__", None)
        if model and isinstance(subject, model[0]):
            return True
    return any(base.__module__.partition(".")[0] in ("keras", "tf_keras") and base.__name__ == "Model"
               for base in type(subject).__mro__)  # fmt: skip


def all_variables(subject: Any) -> Iterator[Any]:
    """Each once: the model's, those of its optimizer and metrics; of a checkpoint or module, all that it tracks."""
    seen: set[int] = set()
    for variable in _variables(subject):
        if id(variable) not in seen:
            seen.add(id(variable))
            yield variable


def _variables(subject: Any) -> Iterator[Any]:
    if isinstance(subject, dict):
        for each in subject.values():
            yield from _variables(each)
    elif isinstance(subject, (list, tuple)):
        for each in subject:
            yield from _variables(each)
    elif is_keras_model(subject):
        yield from subject.variables
        optimizer = getattr(subject, "optimizer", None)
        variables = getattr(optimizer, "variables", ())
        yield from variables() if callable(variables) else variables
        yield from getattr(subject, "metrics_variables", ())
    elif is_variable(subject):
        yield subject
    else:
        yield from tracked_variables(subject)


def is_variable(thing: Any) -> bool:
    """TensorFlow's or Keras'."""
    return all(hasattr(thing, name) for name in ("assign", "dtype", "shape"))


def tracked_variables(subject: Any) -> Iterator[Any]:
    """Those that a checkpoint of it holds."""
    from tensorflow.python.checkpoint.graph_view import ObjectGraphView

    yield from filter(is_variable, ObjectGraphView(subject).breadth_first_traversal()[0])
