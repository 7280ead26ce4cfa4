"""Whether there is room for a save: on the disk, in memory, and permission to write."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

from faultlens.model_files import saved_model
from faultlens.saving.errors import SaveError, cannot_write
from faultlens.saving.formats.base import Format
from faultlens.system.cgroup import cgroup_of
from faultlens.system.machine import kilobytes
from faultlens.system.procfs import read_fields
from faultlens.system.storage import look_at, nearest
from faultlens.text.file_names import is_utf8
from faultlens.text.sizes import in_words


def check_name(path: Path) -> None:
    """Whether there can be a file of this name at all."""
    try:
        os.lstat(path)
    except NotADirectoryError:
        above = next(each for each in path.parents if os.path.lexists(each))
        raise SaveError(f"{path} was not saved: {above} is a file, not a folder.", "Save elsewhere.") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise cannot_write(path, error) from error


def check_folder(path: Path, form: Format) -> None:
    """Keras makes no folder for some formats; a misspelt path must not pass for a new one."""
    if form.name in ("keras", "weights") and not path.parent.exists():
        raise SaveError(f"{path} was not saved: there is no folder {path.parent}.", "Make it, or save elsewhere.")


def check_room(path: Path, form: Format, of_memory: bool = True) -> None:
    """Raises SaveError before a byte is written."""
    _check_name(path, form)
    size, folder = form.size(), look_at(nearest(path.parent))
    if folder.read_only:
        raise SaveError(f"{path} was not saved: {folder.path} is on a read-only file system.", "Save elsewhere.")
    if not folder.writable:
        raise SaveError(f"{path} was not saved: {folder.path} may not be written to.",
                        "Change its permissions, or save elsewhere.")  # fmt: skip
    if path.exists() and not os.access(path, os.W_OK, effective_ids=True):
        raise SaveError(f"{path} was not saved: it may not be written to.",
                        "Change its permissions, or save under another name.")  # fmt: skip
    if folder.free is not None and folder.free < size:
        raise SaveError(
            f"{path} was not saved: it needs about {in_words(size)}, and {in_words(folder.free)} are free"
            f" in {folder.path}.",
            "Make room, or save elsewhere. While a save is written, the previous one is kept.",
        )
    if folder.files_free is not None and folder.files_free < form.files + 4:
        raise SaveError(f"{path} was not saved: {folder.path} can hold no more files (inodes).", "Remove some files.")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < size:
        raise SaveError(f"{path} was not saved: files may have {in_words(limit)} (ulimit -f), it needs about"
                        f" {in_words(size)}.", "Raise the limit.")  # fmt: skip
    if of_memory:
        _check_memory(path, form)


def _check_name(path: Path, form: Format) -> None:
    """What bears the name now will be moved away: that must be a save, and nothing else."""
    if form.name in ("saved_model", "checkpoint") and not is_utf8(str(path)):
        raise SaveError(f"{path} was not saved: TensorFlow takes no path that is not UTF-8.",
                        "Save under another name, or as .keras or .weights.h5.")  # fmt: skip
    if form.name == "saved_model":
        if path.is_dir() and any(path.iterdir()) and not (path / saved_model.GRAPH).exists():
            raise SaveError(f"{path} was not saved: this folder holds other things.", "Save to a folder of its own.")
        if path.is_file():
            raise SaveError(f"{path} was not saved: there is a file of this name.", "Save under another name.")
    elif path.is_dir() and form.name != "checkpoint":
        raise SaveError(f"{path} was not saved: there is a folder of this name.", "Save under another name.")


def _check_memory(path: Path, form: Format) -> None:
    left = memory_left()
    if left is not None and left < form.extra_memory:
        raise SaveError(
            f"{path} was not saved: writing takes {in_words(form.extra_memory)} of memory, {in_words(left)} are left,"
            " and the kernel would kill the program.",
            "Save as .weights.h5 or as a checkpoint, which take little." if form.extra_memory > Format.extra_memory
            else "Free some memory, or raise the limit.",
        )  # fmt: skip


def memory_left() -> int | None:
    """In the control group where least is left, or on the machine."""
    group = cgroup_of()
    room = group.memory_room() if group else None
    machine = kilobytes(read_fields("/proc/meminfo", ":").get("MemAvailable"))
    found = [left for left in (room.left if room else None, machine) if left is not None]
    return max(min(found), 0) if found else None


def own_target(path: str | os.PathLike[str]) -> Path:
    """The file that a name stands for: a link keeps pointing where it pointed."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = path  # type: ignore[assignment]
    if not isinstance(text, str) or not text or (text.endswith("/") and not Path(text).name):
        raise SaveError(f"{text!r} is not a name to save to.", "Give a path such as model.keras.")
    if "://" in text:
        raise SaveError(f"{text} is not on a file system of this machine.", "Save to a local path, then copy it there.")
    return Path(os.path.realpath(text))
