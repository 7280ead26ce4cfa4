"""The user's file: imported as another program would import it, and its functions called."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
import types
from typing import Any

from . import training
from .during import during, line_of
from .refused import EndedError, RefusedError

GUARD = "put what it does when it is run under `if __name__ == '__main__':`"

notes: list[str] = []  # what the user should know of the import
_cut_off: dict[str, Any] = {}  # name of a module → the model that it was about to train


def call(file: str, function: str, *arguments: Any) -> Any:
    name = _module_name(file)
    if getattr(sys.modules.get(name), "__file__", None) != file:
        _import(name, file, function)
    wanted = getattr(sys.modules[name], function, None)
    if not callable(wanted):
        raise RefusedError(f"{os.path.basename(file)} has no function {function}.")
    called = f"{function}({', '.join(map(str, arguments))})"
    try:
        with during(called), training.forbidden(*training.FIT):  # one update may only make the optimizer's variables
            return wanted(*arguments)
    except training.TrainingBegan as began:
        raise RefusedError(
            f"{called} trains the model itself ({line_of(began)}: {began.call}). Name a function that builds and"
            " compiles it, and leaves the training to its caller."
        ) from began
    except SystemExit as error:
        raise EndedError(f"{called} ended its process ({line_of(error)}): {_status(error)}.") from error
    except EOFError as error:
        raise _asks(called, error) from error


def forget_all_but(model: Any) -> None:
    """The model of a training that was cut off would count twice."""
    for name, other in _cut_off.items():
        scope = vars(sys.modules[name])
        for variable in [key for key, value in scope.items() if value is other and other is not model]:
            del scope[variable]
    _cut_off.clear()


def _import(name: str, file: str, function: str) -> None:
    short = os.path.basename(file)
    sys.argv[:] = [file]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    if parent := name.rpartition(".")[0]:
        with during(f"Importing {parent}"):
            importlib.import_module(parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with during(f"Importing {short}"), training.forbidden(*training.FIT, *training.UPDATE):
            spec.loader.exec_module(module)
    except training.TrainingBegan as began:
        _cut(module, function, began)
    except SystemExit as error:
        raise EndedError(
            f"{short} ended itself when it was imported ({line_of(error)}): {_status(error)}. In {short}, {GUARD}."
        ) from error
    except EOFError as error:
        raise _asks(short, error) from error


def _cut(module: types.ModuleType, function: str, began: training.TrainingBegan) -> None:
    """All that the function needs is there, as in the training itself, if the function is."""
    short, place = os.path.basename(module.__file__ or ""), f"{line_of(began)}: {began.call}"
    if not callable(getattr(module, function, None)):
        raise RefusedError(
            f"{short} trains when it is imported ({place}), before {function} is defined. In {short}, {GUARD}."
        ) from began
    _cut_off[module.__name__] = began.owner
    notes.append(
        f"{short} trains when it is imported: it was stopped there ({place}), and what it had loaded until then is"
        f" counted. To measure {function}() alone, {GUARD}."
    )


def _asks(what: str, error: EOFError) -> RefusedError:
    return RefusedError(
        f"{what} reads from standard input ({line_of(error)}), and in a forecast there is nobody to ask."
    )


def _status(error: SystemExit) -> str:
    return f"exit status {error.code or 0}" if isinstance(error.code, (int, type(None))) else str(error.code)


def _module_name(file: str) -> str:
    """Its own name, below those of its folders where it imports from them by dots."""
    folder, base = os.path.split(file)
    names = [os.path.splitext(base)[0]]
    dots = _dots(file)
    while dots >= len(names) or (dots and os.path.isfile(os.path.join(folder, "__init__.py"))):
        folder, parent = os.path.split(folder)
        names.insert(0, parent)
    if dots and folder not in sys.path:
        sys.path.insert(0, folder)
    return ".".join(names)


def _dots(file: str) -> int:
    """How far up the file's relative imports reach."""
    with open(file, "rb") as source:
        nodes = ast.walk(ast.parse(source.read(), file))
    return max((node.level for node in nodes if isinstance(node, ast.ImportFrom)), default=0)
