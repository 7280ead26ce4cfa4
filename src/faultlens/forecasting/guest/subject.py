"""The model to be measured, made by the user's own function, or read from its configuration."""

from __future__ import annotations

import json
from typing import Any

import keras

from . import user_file
from .during import during
from .refused import RefusedError

ASSUMED = "adam"  # the optimizer of a model that was not compiled


def make(request: dict[str, Any]) -> Any:
    if request.get("policy"):
        keras.config.set_dtype_policy(request["policy"])
    function = request["function"]
    made = user_file.call(request["file"], function) if request.get("file") else _from_config(request["config"])
    model = made[0] if isinstance(made, tuple) and made else made
    if not isinstance(model, keras.Model):
        forgotten = " Does it lack a `return`?" if made is None else ""
        what = "None" if made is None else type(made).__name__
        raise RefusedError(f"{function}() returned {what}, not a Keras model.{forgotten}")
    user_file.forget_all_but(model)
    _compile(model, request.get("optimizer"))
    return model


def _from_config(path: str) -> Any:
    with open(path) as file:
        saved = json.load(file)
    try:
        model = keras.saving.deserialize_keras_object(saved["model"], safe_mode=False)
        if saved["shapes"] is not None and not model.built:
            model.build_from_config(saved["shapes"])
        if saved["compiled"]:
            model.compile_from_config(saved["compiled"])
        return model
    except Exception as error:
        raise RefusedError(
            "The model cannot be made anew from its configuration; classes of the main script, for one, cannot be"
            f" imported ({type(error).__name__}). Give a function: faultlens.forecast('train.py:build_model', …)."
        ) from error


def _compile(model: Any, optimizer: str | None) -> None:
    if optimizer is not None:
        try:
            chosen = keras.optimizers.get(optimizer)
        except ValueError:
            raise RefusedError(f"Keras knows no optimizer {optimizer!r}.") from None
    with during("Compiling the model"):
        if not model.compiled:
            model.compile(chosen if optimizer is not None else ASSUMED, loss="mse")
            assumed = "" if optimizer is not None else f"optimizer {ASSUMED}, "
            user_file.notes.append(f"the model is not compiled: {assumed}loss mse assumed")
        elif optimizer is not None:
            model.optimizer = chosen
