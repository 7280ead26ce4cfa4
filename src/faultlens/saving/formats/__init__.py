"""The formats in which a model can be saved, one module each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faultlens.model_files.manifest import Format as FormatName
from faultlens.model_files.saved_model import GRAPH
from faultlens.saving.errors import SaveError
from faultlens.saving.formats.base import Format, all_variables, is_keras_model

# The longer ones first.
ENDINGS: dict[str, FormatName] = {".weights.h5": "weights", ".keras": "keras", ".h5": "hdf5", ".hdf5": "hdf5"}
OF_KERAS: tuple[FormatName, ...] = ("keras", "weights", "hdf5")
NAMES: tuple[FormatName, ...] = ("keras", "weights", "hdf5", "saved_model", "checkpoint")


def format_for(subject: Any, path: Path, name: str | None) -> Format:
    """The one that was named, or the one that the path and the subject stand for. TensorFlow is imported here."""
    chosen = name or _meant(subject, path)
    if chosen not in NAMES:
        raise SaveError(f"{chosen!r} is not a format.", f"Choose one of {', '.join(NAMES)}.")
    if chosen in OF_KERAS:
        if not is_keras_model(subject):
            raise SaveError(
                f"{type(subject).__name__} is no Keras model, so it cannot be saved as {path.name}.",
                "Save it as a checkpoint: a path without an ending, or format='checkpoint'.",
            )
        if by_ending(path) != chosen:
            ending = next(ending for ending, form in ENDINGS.items() if form == chosen)
            raise SaveError(
                f"{path.name} is not a name for the format {chosen!r}.", f"Keras wants it to end in {ending}."
            )
        return _of_keras(chosen, subject)
    return _of_tensorflow(chosen, subject)


def _of_tensorflow(name: str, subject: Any) -> Format:
    from faultlens.saving.formats.checkpoint import CheckpointFormat
    from faultlens.saving.formats.saved_model import SavedModelFormat

    try:
        next(all_variables(subject), None)
    except (TypeError, ValueError, AttributeError) as error:  # TensorFlow does not know what to make of it
        raise SaveError(
            f"TensorFlow cannot save this {type(subject).__name__}: {error}.",
            "Save a model, a tf.train.Checkpoint, a tf.Module or a dict of variables.",
        ) from error
    return SavedModelFormat(subject) if name == "saved_model" else CheckpointFormat(subject)


def _of_keras(name: str, model: Any) -> Format:
    from faultlens.saving.formats.by_keras import KerasFormat, knows_direct_way

    if not knows_direct_way(model) or name == "hdf5":
        return KerasFormat(model, name)  # type: ignore[arg-type]
    from faultlens.saving.formats.keras_archive import ArchiveFormat
    from faultlens.saving.formats.weights import WeightsFormat

    return ArchiveFormat(model) if name == "keras" else WeightsFormat(model)


def _meant(subject: Any, path: Path) -> FormatName:
    """Names that Keras would refuse are refused, but for a plain name, or the one that a SavedModel has already."""
    if known := by_ending(path):
        return known
    if not is_keras_model(subject):
        return "saved_model" if path.is_dir() else "checkpoint"
    if path.suffix and not (path / GRAPH).exists():
        raise SaveError(
            f"{path.name} was not saved: Keras has no format for the ending {path.suffix}.",
            "End it in .keras, .weights.h5 or .h5, or give format='saved_model' for a folder of this name.",
        )
    return "saved_model"


def by_ending(path: Path) -> FormatName | None:
    """The format that Keras would take a name for."""
    return next((form for ending, form in ENDINGS.items() if path.name.endswith(ending)), None)
