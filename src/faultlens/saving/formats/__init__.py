"""The formats in which a model can be saved, one module each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faultlens.saved.manifest import Format as FormatName
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format, is_keras_model

# The longer ones first.
ENDINGS: dict[str, FormatName] = {".weights.h5": "weights", ".keras": "keras", ".h5": "hdf5", ".hdf5": "hdf5"}
NAMES: tuple[FormatName, ...] = ("keras", "weights", "hdf5", "saved_model", "checkpoint")


def format_for(subject: Any, path: Path, name: str | None) -> Format:
    """The one that was named, or the one that the path and the subject stand for. TensorFlow is imported here."""
    chosen = name or _meant(subject, path)
    if chosen not in NAMES:
        raise SaveError(f"{chosen!r} is no format.", f"Choose one of {', '.join(NAMES)}.")
    if chosen in ("keras", "weights", "hdf5"):
        if not is_keras_model(subject):
            raise SaveError(
                f"{type(subject).__name__} is no Keras model, so it cannot be saved as {path.name}.",
                "Save it as a checkpoint: a path without an ending, or format='checkpoint'.",
            )
        return _of_keras(chosen, subject)
    if chosen == "saved_model":
        from faultlens.saving.formats.saved_model import SavedModelFormat

        return SavedModelFormat(subject)
    from faultlens.saving.formats.checkpoint import CheckpointFormat

    return CheckpointFormat(subject)


def _of_keras(name: str, model: Any) -> Format:
    from faultlens.saving.formats.by_keras import KerasFormat, knows_direct_way

    if not knows_direct_way(model) or name == "hdf5":
        return KerasFormat(model, name)  # type: ignore[arg-type]
    from faultlens.saving.formats.keras_archive import ArchiveFormat
    from faultlens.saving.formats.weights import WeightsFormat

    return ArchiveFormat(model) if name == "keras" else WeightsFormat(model)


def _meant(subject: Any, path: Path) -> FormatName:
    return by_ending(path) or ("saved_model" if is_keras_model(subject) or path.is_dir() else "checkpoint")


def by_ending(path: Path) -> FormatName | None:
    """The format that Keras would take a name for."""
    return next((form for ending, form in ENDINGS.items() if path.name.endswith(ending)), None)
