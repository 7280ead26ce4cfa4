"""Which saves of a model are whole, right after a program died while it was saving?"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from faultlens.model_files import checkpoint, reader
from faultlens.model_files.generations import UNFINISHED, Generation, folder_of, generations
from faultlens.model_files.manifest import IN_WORDS, differences
from faultlens.records.crash import Crash, Progress, SaveState, Saving
from faultlens.system.isolated import IsolatedError, run_isolated
from faultlens.system.storage import look_at, nearest
from faultlens.text.safe import one_line

SECONDS = 1.0  # the program's end is not told before
MEMORY = 1 << 30
CHECKED = 32 << 20  # bytes of a save whose checksums are compared: there is time for a few of them
MAX_SAVES = 8
CUT = "..."  # how a path begins that was too long to be left on the page of progress
_NUMBERED = re.compile(r"(.+)-\d{1,9}")


def with_saves(crash: Crash) -> Crash:
    """The crash with the state of what was being saved; or of what was saved last, if that is damaged."""
    progress = crash.progress
    under_way = progress is not None and progress.phase == "save"
    names = _saved(progress)
    if not names or crash.outcome.kind == "ok":
        return crash
    folder = Path(crash.program.directory or os.getcwd())
    found = state_of(folder / names[0], [folder / name for name in names[1:]], under_way)
    if isinstance(found, str):
        return replace(crash, gaps=(*crash.gaps, f"saves of {names[0]}: {found}")) if under_way else crash
    damaged = any(save.current and save.whole is False for save in found.saves)
    return replace(crash, saving=found) if under_way or damaged else crash


def state_of(path: Path, earlier: Sequence[Path] = (), under_way: bool = True) -> Saving | str:
    """As it is now. `earlier`: what the program saved before under other names, newest first, in case nothing is left
    of this one. A text says why it could not be told: files are not what they were, disks do not answer."""
    try:
        return run_isolated(SECONDS, MEMORY, _state, path, earlier, under_way)
    except (IsolatedError, OSError) as error:
        return one_line(str(error), 200)


def _saved(progress: Progress | None) -> list[str]:
    """What is being saved, or was last; then what was saved before it."""
    if progress is None:
        return []
    marks = [mark.text for mark in progress.marks if mark.kind == "saved"][::-1]
    names = [progress.detail, *marks] if progress.phase == "save" else marks
    if not (names and names[0] and _is_path(names[0])):
        return []
    return list(dict.fromkeys(name for name in names if name and _is_path(name)))


def _is_path(name: str) -> bool:
    return not name.startswith(CUT) and "://" not in name and "\0" not in name


def _state(path: Path, earlier: Sequence[Path], under_way: bool) -> Saving:
    target = Path(os.path.realpath(path))
    found = [_save(generation) for generation in _generations(target)[:MAX_SAVES]]
    for other in earlier[:MAX_SAVES]:
        if any(save.whole for save in found):
            break
        found += [replace(_save(each), current=False) for each in _generations(Path(os.path.realpath(other)))[:1]]
    folder = folder_of(target)
    return Saving(
        path=str(target),
        under_way=under_way,
        kept=folder.is_dir(),
        saves=tuple(found),
        unfinished=_unfinished(folder),
        disk_free=look_at(nearest(target.parent)).free,
    )


def _generations(target: Path) -> list[Generation]:
    found = generations(target)
    if not found and not target.exists() and (numbered := _NUMBERED.fullmatch(target.name)):
        found = generations(target.with_name(numbered[1]))  # the others, of a checkpoint that TensorFlow numbers
    if not found and not target.exists() and checkpoint.prefix_of(target) is not None:
        found = [Generation(target, current=True)]
    return found


def _save(generation: Generation) -> SaveState:
    manifest, path = generation.manifest, generation.path
    state = SaveState(path=str(path), generation=generation.number, current=generation.current)
    try:
        if manifest is not None:
            deep = manifest.size <= CHECKED
            damages = differences(manifest, path, deep)
            state = replace(state, format=IN_WORDS[manifest.format], time=manifest.time, size=manifest.size)
            return _judged(state, damages[0].said(path) if damages else None, deep)
        state = replace(state, time=_written(path))
        saved = reader.read(path, deep=_size(path) <= CHECKED)
    except (OSError, ValueError) as error:
        return replace(state, damage=one_line(str(error), 200))
    if saved is None:
        return _judged(state, "it is not a saved model", checked=False)
    state = replace(state, format=saved.kind, size=saved.size)
    return _judged(state, saved.damages[0].said(path) if saved.damages else None, saved.checked)


def _judged(state: SaveState, damage: str | None, checked: bool) -> SaveState:
    return replace(state, whole=damage is None, damage=damage and one_line(damage), checked=checked)


def _written(path: Path) -> float | None:
    index = path.with_name(path.name + ".index")
    place = path if path.exists() else index
    return place.stat().st_mtime if place.exists() else None


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path, *path.parent.glob(f"{glob.escape(path.name)}.data-*")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _unfinished(folder: Path) -> int | None:
    try:
        left = [entry for entry in folder.iterdir() if entry.name.startswith(UNFINISHED)]
        return sum(map(_size, left)) if left else None
    except OSError:
        return None
