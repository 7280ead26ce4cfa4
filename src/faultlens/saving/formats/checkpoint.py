"""`tf.train.Checkpoint`: written by TensorFlow, and compared with memory by the checksums that it carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from faultlens.model_files import checkpoint, reader
from faultlens.model_files.crc32c import masked
from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.checkpoint_target import CheckpointTarget
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format, tracked_variables
from faultlens.saving.target import Target
from faultlens.saving.values import Values, checksum_of


class CheckpointFormat(Format):
    name = "checkpoint"
    files = 3

    def target(self, path: Path) -> Target:
        return CheckpointTarget(path)

    def variables(self) -> Iterator[Any]:
        return tracked_variables(as_checkpoint(self.subject))

    def write(self, path: Path) -> list[SavedVariable]:
        as_checkpoint(self.subject).write(str(path))
        return describe(self.variables(), self.values)

    def verify(self, path: Path, variables: list[SavedVariable]) -> int | None:  # noqa: ARG002 (they are read from memory)
        verify_bundle(path, self.variables(), self.values)
        return None


def as_checkpoint(subject: Any) -> Any:
    """What restores it: `tf.train.Checkpoint(model).restore(…)`, or with the names that a dict gives."""
    import tensorflow as tf

    if isinstance(subject, tf.train.Checkpoint):
        return subject
    if isinstance(subject, dict):
        return tf.train.Checkpoint(**subject)
    if isinstance(subject, (list, tuple)):
        return tf.train.Checkpoint(variables=list(subject))
    return tf.train.Checkpoint(subject)


def describe(variables: Iterable[Any], values: Values) -> list[SavedVariable]:
    found = []
    for variable in variables:
        array = values.of(variable)
        name = str(getattr(variable, "path", None) or variable.name)
        crc = 0 if array.dtype.hasobject else checksum_of(array)
        found.append(SavedVariable(name=name, dtype=array.dtype.name, shape=tuple(array.shape), crc32c=crc))
    return found


def verify_bundle(prefix: Path, variables: Iterable[Any], values: Values) -> None:
    """All checksums on the disk hold, and those of the variables in memory are among them."""
    saved = reader.read(prefix, deep=True)
    if saved is None or saved.damages or not saved.checked:
        what = saved.damages[0].what if saved is not None and saved.damages else "cannot be read"
        raise SaveError(f"{prefix.name} was read back damaged: it {what}.", "Save to another disk.")
    on_disk = {entry.crc for entry in checkpoint.entries(prefix)}
    for variable in variables:
        array = values.of(variable)
        if not array.dtype.hasobject and masked(checksum_of(array)) not in on_disk:
            raise SaveError(
                f"{getattr(variable, 'path', variable.name)} was read back with other values than it has.",
                "Do not change variables while they are saved; if nothing does, the disk or the memory is faulty.",
            )
