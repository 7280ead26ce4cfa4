"""Finding the newest save that is whole, and loading it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faultlens.model_files.generations import Generation, generations, newest_whole, targets_in
from faultlens.model_files.manifest import Format
from faultlens.model_files.record import Damage
from faultlens.saving.errors import SaveError
from faultlens.saving.formats import by_ending
from faultlens.saving.formats.base import is_keras_model
from faultlens.saving.preflight import own_target


@dataclass(frozen=True)
class Restored:
    """What was restored, and where the training stood when it was saved."""

    path: Path
    generation: int | None
    training: dict[str, Any]
    subject: Any = field(default=None, repr=False)  # what was loaded, or loaded into
    passed_over: tuple[str, ...] = ()  # newer saves that are damaged, in words


def newest(path: str | os.PathLike[str]) -> Generation:
    """The newest save of this name that is whole. Tells of newer ones that are not."""
    target = own_target(path)
    found, passed_over = newest_whole(target)
    if found is None:
        if passed_over:
            raise SaveError(
                f"No save of {target} is whole: {in_words(passed_over[0][1])}.", "Restore it from a backup."
            )
        raise SaveError(f"Nothing was saved as {target}.", "Look at the name; `ls -a` shows the folder .faultlens.")
    if passed_over:
        warnings.warn(f"{in_words(passed_over[0][1])}; taking {described(found)} instead", RuntimeWarning, stacklevel=3)
    return found


def load(path: str | os.PathLike[str], into: Any = None, **options: Any) -> Any:
    """Load the newest whole save of this name.

    A `.keras` file gives a model (`options` go to `keras.saving.load_model`), a SavedModel what `tf.saved_model.load`
    gives. Weights and checkpoints are loaded into the model (or `tf.train.Checkpoint`, or dict of variables) that is
    given as `into`, which is returned."""
    return read_into(newest(path), into, options)


def restore_latest(folder: str | os.PathLike[str], into: Any = None, **options: Any) -> Restored | None:
    """Load the newest whole save in a folder, whatever its name, into a model. None if there is none."""
    candidates = sorted(
        (each for target in targets_in(Path(os.path.realpath(folder))) for each in generations(target)),
        key=lambda generation: generation.time,
        reverse=True,
    )
    passed_over: list[str] = []
    for generation in candidates:
        damages = generation.damages()
        if damages:
            passed_over.append(in_words(damages))
            continue
        subject = read_into(generation, into, options)
        training = generation.manifest.training if generation.manifest else {}
        for problem in passed_over:
            warnings.warn(f"{problem}; taking {described(generation)} instead", RuntimeWarning, stacklevel=2)
        return Restored(generation.path, generation.number, training, subject, tuple(passed_over))
    if passed_over:
        raise SaveError(f"No save in {folder} is whole: {passed_over[0]}.", "Restore it from a backup.")
    return None


def read_into(generation: Generation, into: Any, options: dict[str, Any]) -> Any:
    kind, path = _format_of(generation), str(generation.path)
    if kind in ("keras", "hdf5") and into is None:
        import keras

        return keras.saving.load_model(path, **options)
    if kind in ("keras", "hdf5", "weights"):
        if not is_keras_model(into):
            raise SaveError(f"{path} holds weights only.", "Give the model: faultlens.load(path, into=model).")
        if kind == "hdf5":
            warnings.warn(f"{path} gives the weights only: HDF5 files of old keep the optimizer to themselves",
                          RuntimeWarning, stacklevel=4)  # fmt: skip
        _build_optimizer(into)
        into.load_weights(path, **options)
        return into
    import tensorflow as tf

    if kind == "saved_model":
        return tf.saved_model.load(path, **options)
    from faultlens.saving.formats.checkpoint import as_checkpoint

    if into is None:
        raise SaveError(f"{path} is a checkpoint.", "Give what it was made of: faultlens.load(path, into=model).")
    _build_optimizer(into)
    as_checkpoint(into).read(path).assert_existing_objects_matched()
    return into


def described(generation: Generation) -> str:
    number = f"generation {generation.number}" if generation.number is not None else "the save"
    return f"{number} ({generation.path})"


def in_words(damages: list[Damage]) -> str:
    return f"{damages[0].file} {damages[0].what}"


def _format_of(generation: Generation) -> Format:
    if generation.manifest is not None:
        return generation.manifest.format
    return by_ending(generation.path) or ("saved_model" if generation.path.is_dir() else "checkpoint")


def _build_optimizer(model: Any) -> None:
    """Its state can only be restored into variables that are there."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None and hasattr(optimizer, "build") and not getattr(optimizer, "built", True):
        optimizer.build(model.trainable_variables)
