"""Files that Keras writes for itself: older releases, and the HDF5 format of Keras 1 and 2. They cost more memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faultlens.model_files import reader
from faultlens.model_files.manifest import Format as FormatName
from faultlens.model_files.manifest import SavedVariable
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format


class KerasFormat(Format):
    notes = ("written by Keras itself, which takes as much memory again as the model",)

    def __init__(self, model: Any, name: FormatName) -> None:
        super().__init__(model)
        self.name = name
        self.extra_memory += self.size() * 11 // 10

    def write(self, path: Path) -> list[SavedVariable]:
        if self.name == "weights":
            self.subject.save_weights(str(path))
        else:
            with _compiled_as_it_is(self.subject):
                self.subject.save(str(path))
        return []

    def verify(self, path: Path, variables: list[SavedVariable]) -> int | None:  # noqa: ARG002 (nothing is known of them)
        saved = reader.read(path, deep=True)
        damages = saved.damages if saved is not None else ()
        if saved is None or damages:
            what = damages[0].what if damages else "is not a saved model"
            raise SaveError(f"{path.name} was read back damaged: it {what}.", "Save to another disk.")
        return None


@contextmanager
def _compiled_as_it_is(model: Any) -> Iterator[None]:
    """Writing HDF5, Keras 3 takes the optimizer out of what it knows of `compile`: a .keras file of the same model
    would come back with another optimizer."""
    config = getattr(getattr(model, "_compile_config", None), "config", None)
    before = dict(config or {})
    try:
        yield
    finally:
        if config is not None:
            config.update(before)


def knows_direct_way(model: Any) -> bool:
    """Whether this is a model of a Keras whose files we can write ourselves."""
    if any(base.__module__.startswith("tf_keras") for base in type(model).__mro__):
        return False
    try:
        from faultlens.saving.hdf5_store import is_supported
    except ImportError:  # Keras 2
        return False
    from keras.src.saving import saving_lib

    return is_supported() and hasattr(saving_lib, "_serialize_model_as_json")
