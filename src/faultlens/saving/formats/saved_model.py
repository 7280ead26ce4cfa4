"""SavedModel folders: written by TensorFlow, whose variables are compared as those of a checkpoint."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultlens.model_files import reader
from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format, is_keras_model
from faultlens.saving.formats.checkpoint import describe, verify_bundle


class SavedModelFormat(Format):
    name = "saved_model"
    files = 8

    def variables(self) -> Iterator[Any]:
        """The optimizer is not part of it."""
        return iter(self.subject.variables) if is_keras_model(self.subject) else super().variables()

    def size(self) -> int:
        """Keras writes each variable twice."""
        return super().size() * (2 if is_keras_model(self.subject) else 1)

    def write(self, path: Path) -> list[SavedVariable]:
        if is_keras_model(self.subject) and hasattr(self.subject, "export"):
            with contextlib.redirect_stdout(io.StringIO()):  # some releases tell all about it
                self.subject.export(str(path))
        else:
            import tensorflow as tf

            tf.saved_model.save(self.subject, str(path))
        return describe(self.variables(), self.values)

    def verify(self, path: Path, variables: list[SavedVariable]) -> int | None:
        saved = reader.read(path, deep=True)
        if saved is None or saved.damages:
            what = saved.damages[0].what if saved is not None and saved.damages else "is no SavedModel"
            raise SaveError(f"The SavedModel was read back damaged: it {what}.", "Save to another disk.")
        if variables:
            verify_bundle(path / "variables" / "variables", self.variables(), self.values)
        return None
