"""Saving models so that what was saved once is never lost.

import faultlens
faultlens.save(model, "model.keras")
model = faultlens.load("model.keras")
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from faultlens.model_files.generations import Generation
from faultlens.saving.background import TIME_LIMIT, PendingSave, in_background, wait_for
from faultlens.saving.errors import SaveError
from faultlens.saving.restore import Restored, load, restore_latest
from faultlens.saving.steps import perform, request

__all__ = ["Generation", "PendingSave", "Restored", "SaveError", "load", "restore_latest", "save"]


def save(
    subject: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    keep: int = 2,
    background: bool = False,
    time_limit: float = TIME_LIMIT,
    strict: bool = True,
    check_values: bool = False,
    training: Mapping[str, Any] | None = None,
    last: bool = False,
) -> Generation | PendingSave:
    """Save a model, a `tf.train.Checkpoint`, a `tf.Module` or a dict of variables, so that nothing can be lost by it.

    The format follows from the path (`.keras`, `.weights.h5`, `.h5`; without an ending a SavedModel for Keras models, a
    checkpoint for others) or from `format`. Folders are made where Keras and TensorFlow make them: for SavedModels,
    checkpoints and `.h5`. The file is written under a temporary name, synced, read back and compared with what
    is in memory, and only then renamed; `keep` generations are kept, the new one among them. Raises SaveError, with the
    cause, if it cannot be done; what was saved before is then untouched.

    `background` does all this in a forked process, and returns a PendingSave at once. `strict` refuses models that
    could not be rebuilt from the file; `check_values` also those with NaN or infinite values. `training` is any JSON
    that `restore_latest` shall give back. `last`: the program is about to end, so it is tried even where memory may not
    do."""
    wanted = request(
        subject, path, format=format, keep=keep, strict=strict, check_values=check_values, training=training, last=last
    )
    if background:
        return in_background(wanted, time_limit)
    wait_for(wanted.path)
    return perform(wanted)
