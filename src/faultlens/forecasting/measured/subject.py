"""The model to be measured, made by the user's own function, or read from its configuration."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

import keras


class RefusedError(Exception):
    """The user can do something about it; the text says what."""

    ours = True


def make(request: dict[str, Any]) -> Any:
    if request.get("policy"):
        keras.config.set_dtype_policy(request["policy"])
    made = _from_file(request["file"], request["function"]) if request.get("file") else _from_config(request["config"])
    model = made[0] if isinstance(made, tuple) and made else made
    if not isinstance(model, keras.Model):
        raise RefusedError(f"{request['function']}() returned {type(made).__name__}, not a Keras model.")
    _compile(model, request.get("optimizer"))
    return model


def call(file: str, function: str, *arguments: Any) -> Any:
    """A function of a file, which is imported under its own name, as another program would import it."""
    name = os.path.splitext(os.path.basename(file))[0]
    if name not in sys.modules or getattr(sys.modules[name], "__file__", None) != file:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except SystemExit as error:
            raise RefusedError(
                f"{file} ended itself when it was imported: guard its main part with __name__."
            ) from error
    wanted = getattr(sys.modules[name], function, None)
    if not callable(wanted):
        raise RefusedError(f"{file} has no function {function}.")
    return wanted(*arguments)


def _from_file(file: str, function: str) -> Any:
    return call(file, function)


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
    if not model.compiled:
        model.compile(chosen if optimizer is not None else "adam", loss="mse")
    elif optimizer is not None:
        model.optimizer = chosen
