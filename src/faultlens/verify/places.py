"""Which saves does a path stand for, and which generations are there of each?"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.model_files import checkpoint, saved_model
from faultlens.model_files.generations import (
    FOLDER,
    LOCK,
    UNFINISHED,
    Generation,
    entries_of,
    folder_of,
    generations,
    is_checkpoint,
    targets_in,
)
from faultlens.model_files.manifest import Manifest, read_manifest
from faultlens.model_files.writer import Writer, is_leftover
from faultlens.text.sizes import in_words

SUFFIXES = (".keras", ".h5", ".hdf5", ".tflite")
MAX_DEPTH, MAX_ENTRIES, MAX_SAVES = 5, 50_000, 500
_NUMBERED = re.compile(r"(.+)-(\d{1,9})")
_MANIFEST = re.compile(r"(\d{8})\.json")


class Place(NamedTuple):
    """One name that was saved to."""

    shown: str
    target: Path
    generations: tuple[Generation, ...]
    missing: bool = False
    replaced: Manifest | None = None  # of a generation that was written under this name and is not there any more
    notes: tuple[str, ...] = ()


class Found(NamedTuple):
    places: tuple[Place, ...]
    notes: tuple[str, ...] = ()  # what was not looked at, in sentences


def saves_at(path: Path) -> Found:
    """Raises OSError where it may not be looked at."""
    if path.is_dir() and not is_saved_model(path):
        if path.parent.name == FOLDER:  # the generations that were kept of one
            return Found(tuple(_named(path.parent.parent / path.name)))
        return _in_folder(path.parent if path.name == FOLDER else path)
    if path.name == "checkpoint" and checkpoint.prefix_of(path.parent) is not None:
        return _in_folder(path.parent)
    return Found(tuple(_named(path)))


def is_saved_model(folder: Path) -> bool:
    names = (saved_model.GRAPH, saved_model.GRAPH_AS_TEXT, "variables/variables.index")
    return any(os.path.lexists(folder / name) for name in names)


# ------------------------------------------------------------------------------------------- a name


def _named(path: Path) -> Iterator[Place]:
    """A file, a SavedModel, or the prefix of a checkpoint, which is no file itself."""
    if path.name == saved_model.GRAPH:
        path = path.parent
    if path.parent.parent.name == FOLDER:  # a kept generation
        path = path.parent.parent.parent / path.parent.name
    target = Path(os.path.realpath(path))  # as `faultlens.save` does: beside the file itself the generations lie
    if not target.exists() or checkpoint.is_part(target):
        prefix = checkpoint.prefix_of(target) or target
        beside = generations(prefix.with_name(_base(prefix))) if _base(prefix) != prefix.name else []
        if one := next((each for each in beside if each.path == prefix), None):
            yield Place(str(path.with_name(prefix.name)), prefix, (one,))
            return
        target = prefix
    place = _place(target, str(path.with_name(target.name)) if checkpoint.is_part(path) else str(path))
    if place.generations or place.missing:
        yield place


def _place(target: Path, shown: str) -> Place:
    notes = list(_notes(folder_of(target)))
    latest = checkpoint.latest(target.parent)
    named = latest is not None and target.name in (latest.name, _base(latest))
    if is_checkpoint(target) or (not target.exists() and (named or _left_of(target))):
        return _checkpoint(target, shown, notes, latest if named else None)
    found = tuple(generations(target))
    missing = not any(each.current for each in found) and bool(found or _newest_manifest(target))
    return Place(shown, target, found, missing, _replaced(target, found), tuple(notes))


def _checkpoint(target: Path, shown: str, notes: list[str], latest: Path | None) -> Place:
    """`latest`: what the file `checkpoint` names, if it is one of this target."""
    found = generations(target)
    known = checkpoint.listed(target.parent)
    managed = bool(found or _newest_manifest(target)) and folder_of(target).is_dir()
    for prefix in _left_of(target):
        if managed and prefix.name not in known:  # `faultlens.save` brings the index last
            notes.append(f"an interrupted save left data without an index ({prefix.name}); the next save removes it")
        elif all(prefix != each.path for each in found):
            found.append(_left(target, prefix, latest))
    found.sort(key=lambda each: each.number or 0, reverse=True)
    gone = latest is not None and checkpoint.prefix_of(latest) is None
    if latest is not None and gone:
        notes.append(f"the file `checkpoint` names {latest.name}, which is not there")
    return Place(shown, target, tuple(found), not found and gone, notes=tuple(notes))


def _left_of(target: Path) -> list[Path]:
    """The checkpoints of this name that have no index any more, and one without a number, whatever it has."""
    names = {name for name in checkpoint.without_index(target.parent) if target.name in (name, _base(Path(name)))}
    if checkpoint.prefix_of(target) is not None:
        names.add(target.name)
    return [target.with_name(name) for name in sorted(names)]


def _left(target: Path, prefix: Path, latest: Path | None) -> Generation:
    if prefix == target:
        return Generation(prefix, current=True)
    number = int(prefix.name.rpartition("-")[2])
    return Generation(prefix, number, read_manifest(folder_of(target) / f"{number:08d}.json"), current=prefix == latest)


def _base(prefix: Path) -> str:
    numbered = _NUMBERED.fullmatch(prefix.name)
    return numbered[1] if numbered else prefix.name


def _replaced(target: Path, found: tuple[Generation, ...]) -> Manifest | None:
    """The newest manifest, if what bears the name now is something else."""
    if not any(each.current and each.number is None for each in found):
        return None
    newest = _newest_manifest(target)
    there = {each.number for each in found}
    return read_manifest(newest) if newest and int(newest.stem) not in there else None


def _newest_manifest(target: Path) -> Path | None:
    names = (entry.name for entry in entries_of(folder_of(target)) if _MANIFEST.fullmatch(entry.name))
    newest = max(names, default=None)
    return folder_of(target) / newest if newest else None


def _notes(folder: Path) -> Iterator[str]:
    """What interrupted saves left."""
    try:
        entries = list(folder.iterdir())
    except FileNotFoundError:
        return
    except PermissionError:
        yield f"earlier saves are kept in {folder}, where this user may not look"
        return
    unfinished = [entry for entry in entries if entry.name.startswith(UNFINISHED)]
    size = sum(map(_size, unfinished))
    elsewhere = [entry for entry in unfinished if not is_leftover(entry, locked=True, now=time.time())]
    if _is_locked(folder / LOCK):
        yield f"a save is under way ({in_words(size)} so far)" if unfinished else "a save is under way"
    elif elsewhere:
        writer = Writer.of(elsewhere[0])
        yield f"a save may be under way on {writer.host if writer else 'another machine'} ({in_words(size)} so far)"
    elif unfinished:
        many = f"{len(unfinished)} interrupted saves were" if len(unfinished) > 1 else "an interrupted save was"
        removes = "removes it" if len(unfinished) == 1 else "removes them"
        yield f"{many} left ({in_words(size)}); the next save {removes}"
    for entry in sorted(entries):
        if _MANIFEST.fullmatch(entry.name) and read_manifest(entry) is None:
            yield f"the manifest {entry.name} cannot be read"


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks on this file system
    finally:
        os.close(descriptor)


def _size(path: Path) -> int:
    """Of a file, or of the files of a folder."""
    total = 0
    for folder, _, names in os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]:
        for name in names:
            try:
                total += Path(folder, name).lstat().st_size
            except OSError:
                continue
    return total


# ----------------------------------------------------------------------------------------- a folder


class _Walk:
    """Every save below a folder, within bounds."""

    def __init__(self) -> None:
        self.entries = 0
        self.cut = False
        self.closed: list[Path] = []  # folders that may not be looked into

    def targets(self, folder: Path, depth: int = 0) -> Iterator[Path]:
        if self.entries > MAX_ENTRIES or depth > MAX_DEPTH:
            self.cut = True
            return
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            if depth == 0:
                raise
            self.closed.append(folder)
            return
        self.entries += len(entries)
        managed = targets_in(folder)
        names = {target.name for target in managed}
        found = {*managed, *_checkpoints(folder, [entry.name for entry in entries], names)}
        below: list[Path] = []
        for entry in entries:
            path = folder / entry.name
            if entry.name in names:
                continue
            if entry.is_dir(follow_symlinks=False):
                if is_saved_model(path):
                    found.add(path)
                elif entry.name != FOLDER:
                    below.append(path)
            elif entry.name.lower().endswith(SUFFIXES) and _is_regular(path):
                found.add(path)
        yield from sorted(found)
        for path in below:
            yield from self.targets(path, depth + 1)


def _in_folder(folder: Path) -> Found:
    walk = _Walk()
    found: list[Place] = []
    top = Path(os.path.abspath(folder))
    for target in walk.targets(top):
        place = _place(target, str(folder / target.relative_to(top)))
        if not (place.generations or place.notes or place.missing):
            continue
        if len(found) == MAX_SAVES:
            walk.cut = True
            break
        found.append(place)
    notes = [f"Cannot look into {folder / closed.relative_to(top)}." for closed in walk.closed]
    if walk.cut:
        notes.append(f"There is more in {folder} than was looked at.")
    return Found(tuple(found), tuple(notes))


def _checkpoints(folder: Path, names: list[str], managed: set[str]) -> Iterator[Path]:
    """The prefixes of TensorFlow's checkpoints: those that differ by a number alone are generations of one."""
    prefixes = [name.removesuffix(".index") for name in names if name.endswith(".index")]
    prefixes = [prefix for prefix in prefixes if any(name.startswith(prefix + ".data-") for name in names)]
    prefixes += sorted(checkpoint.without_index(folder))
    latest = checkpoint.latest(folder)
    if latest is not None and latest.parent == folder:
        prefixes.append(latest.name)  # it may be gone
    found: set[str] = set()
    for prefix in prefixes:
        base = _base(folder / prefix)
        base = prefix if (folder / base).exists() else base
        if base not in found and base not in managed:
            found.add(base)
            yield folder / base


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False
