"""Where a save goes, and the steps that put it there: nobody ever finds half of it, and nothing is lost on the way.

A save is written under a temporary name below `.faultlens`, synced and verified by others. What happens here:

1. its manifest is written and synced;
2. what bears the name now gets a second name among the kept generations (a folder: see `_exchange`);
3. the new save is renamed to the name: from this instant on it is the current one;
4. the folder is synced, and only then are the oldest generations removed.

What a save replaces it resembles: owner, group, mode, ACL and the user's extended attributes are kept."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from faultlens.fs import access, atomic
from faultlens.model_files import generations as saves
from faultlens.model_files.generations import LOCK, UNFINISHED, folder_of, suffix_of
from faultlens.model_files.manifest import Manifest, place_of
from faultlens.model_files.saved_model import GRAPH
from faultlens.model_files.writer import Writer, is_leftover
from faultlens.saving.errors import SaveError, cannot_write

AT_FDCWD = -100
RENAME_EXCHANGE = 2  # <linux/fs.h>
# What file systems answer that have no hard links, locks or exchanges (FAT, some network file systems).
_NOT_OFFERED = (errno.EPERM, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EMLINK, errno.EXDEV, errno.ENOLCK)
LOCK_PAUSE = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


class Target:
    """One name to save to, a file or a folder. For a checkpoint, see `checkpoint_target.py`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = folder_of(path)
        self.alone = False  # whether the lock keeps other writers of this machine away
        self._now = time.time()

    # ---------------------------------------------------------------------------------------- before

    @contextlib.contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """One writer at a time. A process that dies lets go."""
        try:
            self._make_folder()
            lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            self._lock(lock, seconds)
            os.utime(lock)
            self._now = os.fstat(lock).st_mtime  # the clocks of machines that share a folder may differ
            yield
        finally:
            os.close(lock)

    def _make_folder(self) -> None:
        """Its name must outlive a power cut, or all that is kept in it is gone."""
        if self.folder.is_dir():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        above = self.folder.parent
        if not above.is_dir():
            above.mkdir(exist_ok=True)
            access.take_access(self.path.parent, above)  # who may save there may keep generations there
        self.folder.mkdir(exist_ok=True)
        atomic.sync_folder(above)
        atomic.sync_folder(self.path.parent)

    def _lock(self, lock: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.alone = True
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SaveError(
                        f"{self.path} is being saved by another process for more than {seconds:g} s.",
                        "End that process, or save under another name.",
                    ) from None
                time.sleep(LOCK_PAUSE)
            except OSError as error:
                if error.errno in _NOT_OFFERED:
                    return  # names of unfinished saves differ, so two writers do not disturb each other's files
                raise

    def unfinished(self) -> Path:
        """A new name to write to, in a folder that nobody else can look into: who may read it is settled later."""
        folder = self.folder / Writer.own().new_name()
        folder.mkdir(0o700)
        return folder / self.path.name

    def clean(self) -> None:
        """Remove what interrupted saves left. What other writers may be at work on stays."""
        for entry in self.unfinished_saves():
            if is_leftover(entry, self.alone, self._now):
                remove(entry)

    def unfinished_saves(self) -> list[Path]:
        return [entry for entry in self.folder.iterdir() if entry.name.startswith(UNFINISHED)]

    def discard(self, written: Path) -> None:
        """What was not published."""
        remove(written.parent)

    def next_number(self) -> int:
        """Of the new save. What bears the name now and is not ours gets the one below."""
        foreign = any(each.current and each.number is None for each in saves.generations(self.path))
        return saves.next_number(self.path) + foreign

    # ----------------------------------------------------------------------------------------- after

    def publish(self, written: Path, manifest: Manifest) -> Path:
        """Give the save its name. Returns what is to be loaded."""
        if os.path.lexists(self.path) and _resemble(self.path, written):
            sync_tree(written)
        self.write_manifest(manifest, written)
        if not os.path.lexists(self.path):
            written.rename(self.path)
        elif self.path.is_dir() and written.is_dir():
            self._replace_folder(written, self._kept_name(manifest))
        else:
            self._keep_current_file(self._kept_name(manifest))
            written.rename(self.path)
        self.close_folder(self.path)
        atomic.sync_folder(self.path.parent)
        atomic.sync_folder(self.folder)
        return self.path

    def prune(self, keep: int) -> None:
        """Leave `keep` generations, the current one among them."""
        there = saves.generations(self.path)
        for generation in there[max(keep, 1) :]:
            if not generation.current:
                self.remove_generation(generation)
        numbers = {generation.number for generation in there[: max(keep, 1)] if generation.number is not None}
        for entry in self.folder.glob("*.json"):
            if entry.stem.isdigit() and int(entry.stem) not in numbers:
                entry.unlink(missing_ok=True)

    def remove_generation(self, generation: saves.Generation) -> None:
        remove(generation.path)

    def write_manifest(self, manifest: Manifest, written: Path) -> None:
        """Who may not read the save may not read this."""
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
        like = place_of(written, manifest.files[0]) if manifest.files else written
        self.replace(self.folder / f"{manifest.generation:08d}.json", data, like)

    def replace(self, path: Path, data: bytes, like: Path) -> None:
        """In one step, and to be read by whom `like` is. What a kill leaves is found by `clean`."""
        written = self.unfinished()
        try:
            atomic.write_synced(written, data)
            if like.exists() and access.take_access(like, written):
                sync_file(written)
            written.rename(path)
        finally:
            remove(written.parent)
        atomic.sync_folder(path.parent)

    def close_folder(self, model: Path) -> None:
        """Kept generations are for those who may read the model, also if it was open to more before."""
        with contextlib.suppress(OSError):  # it is saved; the folder may be another user's
            access.narrow_folder(self.folder, model)
            for path in (self.folder / LOCK, self.folder):
                access.hand_over(path, model)

    def _kept_name(self, replacing: Manifest) -> Path:
        current = next((each for each in saves.generations(self.path) if each.current), None)
        number = replacing.generation - 1 if current is None or current.number is None else current.number
        return self.folder / f"{number:08d}{suffix_of(self.path)}"

    def _keep_current_file(self, kept: Path) -> None:
        if kept.exists():
            return
        try:
            os.link(self.path, kept)
        except OSError as error:
            if error.errno not in _NOT_OFFERED:
                raise
            copied = self.unfinished()  # there is room for two, or the new one could not have been written
            try:
                shutil.copyfile(self.path, copied)
                access.take_over(self.path, copied)
                state = self.path.stat()
                with contextlib.suppress(OSError):  # without its time it is known by its content
                    os.utime(copied, ns=(state.st_atime_ns, state.st_mtime_ns))
                sync_file(copied)
                copied.rename(kept)
            finally:
                remove(copied.parent)
        atomic.sync_folder(self.folder)

    def _replace_folder(self, written: Path, kept: Path) -> None:
        if kept.exists():
            remove(kept)
        if _exchange(written, self.path):
            written.rename(kept)
        else:  # for an instant there is no such name; the kept generation is found by `faultlens.load`
            self.path.rename(kept)
            written.rename(self.path)


def _resemble(old: Path, new: Path) -> bool:
    """Give a save the access of the one that it replaces, file by file. Whether that changed anything."""
    changed = False
    for folder, _, names in os.walk(new, topdown=False) if new.is_dir() else ():
        for path in (*(Path(folder, name) for name in names), Path(folder)):
            before = old / path.relative_to(new)
            if not before.exists():
                before = old if path.is_dir() else old / GRAPH
            changed |= before.exists() and access.take_over(before, path)
    return changed or (not new.is_dir() and access.take_over(old, new))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Every file and folder of it, and the folder that it lies in."""
    if path.is_dir():
        for folder, _, names in os.walk(path, topdown=False):
            for name in names:
                sync_file(Path(folder, name))
            atomic.sync_folder(Path(folder))
    else:
        sync_file(path)
    atomic.sync_folder(path.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step. False where the file system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    if _libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_OFFERED:
        return False
    raise OSError(code, os.strerror(code), str(other))
