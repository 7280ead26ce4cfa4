"""What `faultlens run WORDS …` starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from faultlens.errors import FaultlensError
from faultlens.target_env.which_python import Choice, which_python

SCRIPTS = (".py", ".pyc", ".pyz")


class Command(NamedTuple):
    words: list[str]
    python: Choice | None = None  # that was chosen for it; None for a program that is started as it is


def resolve_command(words: Sequence[str], python: str | None = None) -> Command:
    """What `python` would take (`train.py`, `-m module`, `-c code`, `-`, a folder with `__main__.py`) is given to the
    Python that the user means, `python` if named; anything else is a program."""
    first = words[0]
    if first.startswith("-") or _is_script(Path(first)):
        choice = which_python(python, os.environ)
        return Command([choice.executable, *words], choice)
    if shutil.which(first) is None:
        raise _no_program(first)
    return Command(list(words))


def _is_script(path: Path) -> bool:
    return (path.suffix in SCRIPTS and path.is_file()) or (path / "__main__.py").is_file()


def _no_program(word: str) -> FaultlensError:
    path = Path(word)
    if path.is_dir():
        return FaultlensError(f"Cannot run {word}: it is a folder.", "Name a program in it.")
    if path.is_file() and os.access(path, os.X_OK):
        return FaultlensError(f"Cannot run {word}: it is not on PATH.", f"Write ./{word}.")
    if path.is_file():
        advice = "Name the program that runs it first, or make it one with `chmod +x`."
        return FaultlensError(f"Cannot run {word}: the file is not executable.", advice)
    if path.suffix in SCRIPTS:
        return FaultlensError(f"Cannot run {word}: there is no such file.", "Check the spelling, or the folder.")
    if "/" not in word and (beside := Path(which_python(None, os.environ).executable).with_name(word)).exists():
        return FaultlensError(f"Cannot run {word}: it is not on PATH.", f"Write {beside}, or -m {word}.")
    return FaultlensError(f"Cannot run {word}: no such program.", "Check the spelling, or give its full path.")
