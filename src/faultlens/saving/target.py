"""Where a save goes, and the steps that put it there: nobody ever finds half of it, and nothing is lost on the way.

A save is written under a temporary name below `.faultlens`, synced and verified by others. What happens here:

1. its manifest is written and synced;
2. what bears the name now gets a second name among the kept generations (a folder: see `_exchange`);
3. the new save is renamed to the name: from this instant on it is the current one;
4. the folder is synced, and only then are the oldest generations removed."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from faultlens import durable
from faultlens.saved import generations as saves
from faultlens.saved.generations import LOCK, UNFINISHED, folder_of, suffix_of
from faultlens.saved.manifest import Manifest, place_of
from faultlens.saving.errors import SaveError, cannot_write

AT_FDCWD = -100
RENAME_EXCHANGE = 2  # <linux/fs.h>
# What file systems answer that have no hard links, locks or exchanges (FAT, some network file systems).
_NOT_OFFERED = (errno.EPERM, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EMLINK, errno.EXDEV, errno.ENOLCK)
LOCK_PAUSE = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


class Target:
    """One name to save to, a file or a folder. For a checkpoint, see `CheckpointTarget`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = folder_of(path)
        self._alone = False  # whether the lock keeps other writers away

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
            yield
        finally:
            os.close(lock)

    def _make_folder(self) -> None:
        """Its name must outlive a power cut, or all that is kept in it is gone."""
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
            durable.sync_folder(self.folder.parent)
            durable.sync_folder(self.path.parent)

    def _lock(self, lock: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._alone = True
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
        """A new name to write to. It ends as Keras wants it."""
        return self._new_name(suffix_of(self.path))

    def _new_name(self, suffix: str = "") -> Path:
        return self.folder / f"{UNFINISHED}{socket.gethostname()}@{os.getpid()}@{time.monotonic_ns()}{suffix}"

    def clean(self) -> None:
        """Remove what interrupted saves left. Without a lock, what other writers may be at work on stays."""
        for entry in [entry for entry in self.folder.iterdir() if entry.name.startswith(UNFINISHED)]:
            if self._alone or _is_abandoned(entry.name):
                remove(entry)

    def discard(self, written: Path) -> None:
        """What was not published."""
        remove(written)

    def next_number(self) -> int:
        """Of the new save. What bears the name now and is not ours gets the one below."""
        foreign = any(each.current and each.number is None for each in saves.generations(self.path))
        return saves.next_number(self.path) + foreign

    # ----------------------------------------------------------------------------------------- after

    def publish(self, written: Path, manifest: Manifest) -> Path:
        """Give the save its name. Returns what is to be loaded."""
        self._write_manifest(manifest)
        if not os.path.lexists(self.path):
            written.rename(self.path)
        elif self.path.is_dir() and written.is_dir():
            self._replace_folder(written, self._kept_name(manifest))
        else:
            self._keep_current_file(self._kept_name(manifest))
            written.rename(self.path)
        durable.sync_folder(self.path.parent)
        durable.sync_folder(self.folder)
        return self.path

    def prune(self, keep: int) -> None:
        """Leave `keep` generations, the current one among them."""
        there = saves.generations(self.path)
        for generation in there[max(keep, 1) :]:
            if not generation.current:
                self._remove_generation(generation)
        numbers = {generation.number for generation in there[: max(keep, 1)] if generation.number is not None}
        for entry in self.folder.glob("*.json"):
            if entry.stem.isdigit() and int(entry.stem) not in numbers:
                entry.unlink(missing_ok=True)

    def _remove_generation(self, generation: saves.Generation) -> None:
        remove(generation.path)

    def _write_manifest(self, manifest: Manifest) -> None:
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
        self._replace(self.folder / f"{manifest.generation:08d}.json", data)

    def _replace(self, path: Path, data: bytes) -> None:
        """In one step. What a kill leaves is found by `clean`."""
        written = self._new_name()
        durable.write_synced(written, data)
        written.rename(path)
        durable.sync_folder(path.parent)

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
            shutil.copyfile(self.path, copied)
            with contextlib.suppress(OSError):  # without its time it is known by its content
                shutil.copystat(self.path, copied)
            sync_file(copied)
            copied.rename(kept)
        durable.sync_folder(self.folder)

    def _replace_folder(self, written: Path, kept: Path) -> None:
        if kept.exists():
            remove(kept)
        if _exchange(written, self.path):
            written.rename(kept)
        else:  # for an instant there is no such name; the kept generation is found by `faultlens.load`
            self.path.rename(kept)
            written.rename(self.path)


class CheckpointTarget(Target):
    """A prefix: each save gets its own number, and the file `checkpoint` names the latest, as TensorFlow has it."""

    def unfinished(self) -> Path:
        """A prefix in a folder of its own."""
        folder = super().unfinished()
        folder.mkdir()
        return folder / self.path.name

    def publish(self, written: Path, manifest: Manifest) -> Path:
        self._write_manifest(manifest)
        final = self.path.with_name(f"{self.path.name}-{manifest.generation}")
        # The index last: without it there is no checkpoint.
        for file in sorted(manifest.files, key=lambda file: file.name == ".index"):
            place_of(written, file).rename(place_of(final, file))
        durable.sync_folder(self.path.parent)
        self._write_state([final, *(each.path for each in saves.generations(self.path) if each.path != final)])
        return final

    def discard(self, written: Path) -> None:
        remove(written.parent)

    def clean(self) -> None:
        """Also data whose index is gone, or never came."""
        super().clean()
        if not self._alone:
            return
        ours = [int(entry.stem) for entry in self.folder.glob("*.json") if entry.stem.isdigit()]
        numbered = (self.path.with_name(f"{self.path.name}-{number}") for number in ours)
        for prefix in numbered:
            if not _index(prefix).exists():
                for data in _data_files(prefix):
                    remove(data)

    def prune(self, keep: int) -> None:
        kept = [generation.path for generation in saves.generations(self.path)[: max(keep, 1)]]
        if kept:
            self._write_state(kept)
        super().prune(keep)

    def _remove_generation(self, generation: saves.Generation) -> None:
        _index(generation.path).unlink(missing_ok=True)
        for data in _data_files(generation.path):
            data.unlink(missing_ok=True)

    def _write_state(self, newest_first: list[Path]) -> None:
        lines = [f"model_checkpoint_path: {_quoted(newest_first[0].name)}"]
        lines += [f"all_model_checkpoint_paths: {_quoted(path.name)}" for path in reversed(newest_first)]
        self._replace(self.path.parent / "checkpoint", ("\n".join(lines) + "\n").encode())


def _is_abandoned(name: str) -> bool:
    """Whether the process that wrote it was one of this machine, and is gone."""
    host, pid, *_ = (*name.removeprefix(UNFINISHED).split("@"), "", "")
    return host == socket.gethostname() and pid.isdigit() and not Path("/proc", pid).exists()


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
            durable.sync_folder(Path(folder))
    else:
        sync_file(path)
    durable.sync_folder(path.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step. False where the file system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    if _libc.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_OFFERED:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _index(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".index")


def _data_files(prefix: Path) -> list[Path]:
    return list(prefix.parent.glob(f"{_literal(prefix.name)}.data-*-of-*"))


def _literal(name: str) -> str:
    """For glob."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)
