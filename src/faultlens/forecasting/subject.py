"""What is to be forecast: a function of a file, or a model that exists in this program."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.errors import FaultlensError
from faultlens.text.safe import one_line

HOW = "Say it as train.py:build_model."


class Function(NamedTuple):
    file: str
    name: str
    given: int = 0  # arguments that it is called with


class Subject(NamedTuple):
    name: str  # for people
    request: dict[str, Any]  # what the measured run needs to make the model
    path: list[str]  # folders to import from
    functions: tuple[Function, ...] = ()  # of the user's files


def function_of(text: str, given: int = 0) -> Function:
    """ "train.py:build_model"."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not name.isidentifier():
        raise FaultlensError(f"{one_line(text, 100)!r} names no function.", HOW)
    if not _is_file(path):
        raise FaultlensError(f"There is no file {one_line(file, 200)}.", HOW)
    if path.suffix != ".py":
        raise FaultlensError(f"{one_line(file, 200)} is not a Python file.", HOW)
    return Function(str(path.resolve()), name, given)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def subject_of(text: str) -> Subject:
    function = function_of(text)
    request = {"file": function.file, "function": function.name}
    return with_function(Subject(text, request, [os.getcwd()]), function)


def with_function(subject: Subject, function: Function) -> Subject:
    """Its file may import what lies beside it."""
    path = [str(Path(function.file).parent), *subject.path]
    return subject._replace(path=list(dict.fromkeys(path)), functions=(*subject.functions, function))


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
