"""What a reproducer needs to run later, in another shell: the library that was built for it, and its arrays. The latest
of them are kept in a folder beside the reports."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from faultlens.custom_op.building import Target, build, build_command
from faultlens.fs.state_dir import home
from faultlens.op_model.files import SCRIPT, Files

MOST = 20
UNFINISHED = ".new-"
CANNOT_BE_KEPT = "# Set FAULTLENS_HOME to a folder that you may write, and test again: this could not be kept."


class Library(NamedTuple):
    """One that was built from a source."""

    path: Path
    source: Path
    target: Target
    lasts: bool  # it stays where it is
    is_new: bool = True

    def text(self, reproducer: str) -> str:
        """The reproducer, to be run when this command has ended."""
        if self.lasts or not reproducer:
            return reproducer
        own = Path(self.path.name)
        command = shlex.join(build_command([self.source.resolve()], own, self.target))
        return f"# first: {command}\n{reproducer.replace(str(self.path.resolve()), f'./{own}')}"

    def drop(self, needed: bool) -> None:
        """Nothing that was found now, or before, needs it."""
        if not self.lasts or (self.is_new and not needed):
            shutil.rmtree(self.path.parent, ignore_errors=True)


def built(source: Path, target: Target) -> Library:
    work = Path(tempfile.mkdtemp(prefix="faultlens-op-"))
    path = work / f"{source.stem}.so"
    try:
        build([source], path, target, ["-g"])
        stored = _store(source.stem, {path.name: path.read_bytes()})
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    if stored is None:
        return Library(path, source, target, lasts=False)
    shutil.rmtree(work, ignore_errors=True)
    return Library(stored.folder / path.name, source, target, True, stored.is_new)


def text_of(name: str, files: Files) -> str:
    """The script; what it loads from beside it is kept, and loaded from there."""
    text = files[SCRIPT].decode()
    arrays = {file: data for file, data in files.items() if file != SCRIPT}
    if not arrays:
        return text
    stored = _store(name, arrays)
    if stored is None:
        return f"{CANNOT_BE_KEPT}\n{text}"
    for file in arrays:
        text = text.replace(f"np.load({file!r})", f"np.load({str(stored.folder / file)!r})")
    return text


class _Stored(NamedTuple):
    folder: Path
    is_new: bool


def _store(name: str, files: Mapping[str, bytes]) -> _Stored | None:
    """In a folder that is named after them; None where nothing can be written."""
    digest = hashlib.sha256()
    for file, data in sorted(files.items()):
        digest.update(f"{file} {len(data)} ".encode() + data)
    shelf = home().absolute() / "ops"
    folder = shelf / f"{name}-{digest.hexdigest()[:12]}"
    try:
        shelf.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=shelf))
        try:
            for file, data in files.items():
                (unfinished / file).write_bytes(data)
            is_new = not folder.exists()
            if is_new:
                unfinished.rename(folder)
            os.utime(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        _make_room(shelf, folder)
    except OSError:
        return None
    return _Stored(folder, is_new)


def _make_room(shelf: Path, keep: Path) -> None:
    """The latest stay; one that is being written belongs to somebody."""
    folders = [each for each in shelf.iterdir() if each.is_dir() and not each.name.startswith(UNFINISHED)]
    for old in sorted(folders, key=lambda each: each.stat().st_mtime)[:-MOST]:
        if old != keep:
            shutil.rmtree(old, ignore_errors=True)
