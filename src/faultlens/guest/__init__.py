"""Runs inside the user's program: remembers the lines that made the nodes of its graphs, and how far it has come; and
says what its memory is used for, when asked.

The agent loads this folder, under a name of its own, when the program begins to import TensorFlow or Keras, or when the
supervisor asks. The
program's environment has no faultlens, so nothing but Python's own library (3.9 and newer) is used here."""

from __future__ import annotations

from itertools import chain as all_of
from typing import Any

from . import layout
from .census import Census
from .guard import Guard
from .hooks import Chain, Hooks
from .keras_hooks import keras_hooks
from .lines import FrameFinder, Lines
from .notes import Notes
from .progress import Progress
from .tally import Tally
from .tensorflow_hooks import tensorflow_hooks

PACKAGES = ("tensorflow", "keras", "tf_keras")

_hooks: list[Hooks] = []
_progress: list[tuple[Progress, Guard]] = []
_tally = Tally()
_census = Census(_tally)


def start(chain: Chain, frame_finder: FrameFinder, node_recorder: Any, notes: str, page: Any) -> Hooks:
    """The first three are made in C; `page` is memory for the progress, None if there is none."""
    kept = Notes(notes)
    guard = Guard(lambda problem: kept.write({"problem": problem}))
    lines = Lines(kept, guard, frame_finder)
    progress = Progress(page if page is not None else bytearray(layout.PAGE_BYTES))
    theirs = tensorflow_hooks(lines, progress, _tally, guard, node_recorder), keras_hooks(lines, progress, guard)
    hooks = Hooks(chain, guard, all_of(*theirs))
    _hooks.append(hooks)
    _progress.append((progress, guard))
    return hooks


def started() -> bool:
    return bool(_hooks)


def look(notes: str) -> None:
    """The supervisor asks what the memory is used for. A failure of ours costs nothing but the answer."""
    kept = Notes(notes)
    steps = _progress[0][0].made if _progress else None
    Guard(lambda problem: kept.write({"census": {"problem": problem}}))(_census.take)(kept, steps)


def importing(package: str) -> None:
    """The program begins to import one of PACKAGES."""
    for hooks in _hooks:
        hooks.importing(package)


def saving_begins(path: str) -> None:
    """Said by `faultlens.save`, which the hooks do not see."""
    for progress, guard in _progress:
        guard(progress.begin)("save", path)


def saving_ends() -> None:
    for progress, guard in _progress:
        guard(progress.end)("save", mark="saved")
