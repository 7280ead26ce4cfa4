"""What is to be forecast: a function of a file, or a model that exists in this program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.errors import FaultlensError
from faultlens.safe_text import one_line


class Subject(NamedTuple):
    name: str  # for people
    request: dict[str, Any]  # what the measured run needs to make the model
    path: list[str]  # folders to import from


class Function(NamedTuple):
    file: str
    name: str


def function_of(text: str) -> Function:
    """ "train.py:build_model"."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not name.isidentifier():
        raise FaultlensError(f"{one_line(text, 100)!r} names no function.", "Say it as train.py:build_model.")
    if not path.is_file():
        raise FaultlensError(f"There is no file {one_line(file, 200)}.", "Say it as train.py:build_model.")
    return Function(str(path.resolve()), name)


def subject_of(text: str) -> Subject:
    function = function_of(text)
    return Subject(text, {"file": function.file, "function": function.name}, [str(Path(function.file).parent)])


def described_model(model: Any, folder: Path, path: list[str]) -> Subject:
    """A model of this process, whose weights are not needed: its configuration is enough to make another."""
    import keras

    try:
        config = {
            "model": keras.saving.serialize_keras_object(model),
            "shapes": model.get_build_config(),
            "compiled": model.get_compile_config() if model.compiled else None,
        }
        text = json.dumps(config)
    except Exception as error:
        raise FaultlensError(
            f"The configuration of {model.name} cannot be written: {one_line(str(error), 200)}.",
            "Give a function that builds it instead: faultlens.forecast('train.py:build_model', …).",
        ) from error
    file = folder / "model.json"
    file.write_text(text)
    return Subject(model.name, {"config": str(file), "function": model.name}, path)
