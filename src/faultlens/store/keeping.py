"""How many reports are kept, and for how long: by number, size and age.

Nothing is locked, because locks do not reach every machine that shares a folder: names are unique, and a report comes
and goes by one rename."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from faultlens.errors import FaultlensError
from faultlens.fs.atomic import replace_name
from faultlens.text import sizes

REPORT = "report.json"
SUMMARY = "summary.json"
UNFINISHED = ".new-"
LEAVING = ".old-"
_IN_USE = ".in-use-"
_REMOVED = "removed.json"

_BETWEEN = re.compile(r"\.(?:new|old)-[0-9a-f]{16}")
_IS_LEFT_BEHIND_AFTER = 3600.0  # seconds
_IS_NO_LONGER_USED_AFTER = 24 * 3600.0
_DAY = 24 * 3600.0

NUMBER, BYTES, DAYS = "FAULTLENS_KEEP", "FAULTLENS_KEEP_BYTES", "FAULTLENS_KEEP_DAYS"
ALL = "all"


class Bounds(NamedTuple):
    """None: without end."""

    number: int | None = 100
    size: int | None = 500 << 20  # bytes
    days: float | None = None

    def __str__(self) -> str:
        parts = [f"at most {self.number}"] if self.number is not None else []
        parts += [f"{sizes.in_words(self.size)} in all"] if self.size is not None else []
        parts += [f"{self.days:g} days each"] if self.days is not None else []
        return ", ".join(parts) or "without end"


class Removed(msgspec.Struct, frozen=True):
    """What had to make room, in the whole life of a folder."""

    number: int = 0
    time: float = 0.0  # of the last time


def bounds() -> Bounds:
    """As the variables of the environment have it. FaultlensError: one of them cannot be read."""
    default = Bounds()
    number, size, days = (os.environ.get(name, "").strip() for name in (NUMBER, BYTES, DAYS))
    return Bounds(
        default.number if not number else _value(NUMBER, number, "100", _positive(number)),
        default.size if not size else _value(BYTES, size, "2GB", sizes.from_words(size)),
        default.days if not days else _value(DAYS, days, "30", _positive(days)),
    )


def _value(name: str, text: str, example: str, value: int | None) -> int | None:
    if text.lower() == ALL:
        return None
    if value is None:
        raise FaultlensError(f"{name}={text} cannot be understood.", f"Say {name}={example}, or {name}={ALL}.")
    return value


def _positive(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,8}", text) else None


def removed(home: Path) -> Removed:
    try:
        return msgspec.json.decode(read_regular(home / _REMOVED, 4096), type=Removed)
    except (OSError, ValueError):
        return Removed()


@contextlib.contextmanager
def in_use(report: Path) -> Iterator[None]:
    """A report that is worked on does not make room for others."""
    mark = report.with_name(f"{_IN_USE}{os.urandom(8).hex()}")
    with contextlib.suppress(OSError):  # where nothing can be written, nothing can be removed
        mark.touch(0o600)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            mark.unlink(missing_ok=True)


def make_room(home: Path, folders: Sequence[Path], keep: Path) -> None:
    """Remove the oldest reports that are beyond the bounds, and what interrupted saves left behind. `folders` are the
    reports of the one who asks, oldest first; `keep` always stays."""
    _clear(home)
    try:
        limits = bounds()
    except FaultlensError:
        return  # `faultlens show --list` says so; what was to be kept is not known
    measured = {folder: _size(folder) for folder in folders}
    number, total, gone = len(measured), sum(measured.values()), 0
    oldest = time.time() - limits.days * _DAY if limits.days is not None else float("-inf")
    for folder, size in measured.items():
        over = (limits.number is not None and number > limits.number) or (
            limits.size is not None and total > limits.size
        )
        if folder != keep and (over or _saved(folder) < oldest) and _remove(home, folder):
            number, total, gone = number - 1, total - size, gone + 1
    if gone:
        _note(home, gone)


def read_regular(path: Path, limit: int) -> bytes:
    """A file that another user may have put there: no link is followed, no pipe is waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is no file")
        return file.read(limit)


def _clear(home: Path) -> None:
    for path in (*home.glob(f"{UNFINISHED}*"), *home.glob(f"{LEAVING}*")):
        with contextlib.suppress(OSError):
            old = time.time() - path.lstat().st_mtime > _IS_LEFT_BEHIND_AFTER
            if old and _BETWEEN.fullmatch(path.name):
                _empty(path)


def _remove(home: Path, folder: Path) -> bool:
    """Under its name it is there or not, never half. A folder that somebody put something into stays."""
    leaving = home / f"{LEAVING}{os.urandom(8).hex()}"
    try:
        if not _is_plain(folder):
            return False
        folder.rename(leaving)
        if not _is_plain(leaving):  # in the meantime
            leaving.rename(folder)
            return False
        _empty(leaving)
    except OSError:
        return False
    return True


def _is_plain(folder: Path) -> bool:
    """Whether there is nothing but what we wrote, and nobody at work on it."""
    names = set(os.listdir(folder)) - {REPORT, SUMMARY}
    now = time.time()
    used = {name for name in names if name.startswith(_IN_USE)}
    return names == used and all(now - (folder / name).lstat().st_mtime > _IS_NO_LONGER_USED_AFTER for name in used)


def _empty(folder: Path) -> None:
    """Remove the files that we wrote, and the folder when nothing else is in it."""
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(inside).st_uid != os.geteuid():
            return
        for name in os.listdir(inside):
            if name in (REPORT, SUMMARY) or name.startswith(_IN_USE):
                os.unlink(name, dir_fd=inside)
    finally:
        os.close(inside)
    folder.rmdir()


def _size(folder: Path) -> int:
    total = 0
    for name in (REPORT, SUMMARY):
        with contextlib.suppress(OSError):
            total += (folder / name).lstat().st_size
    return total


def _saved(folder: Path) -> float:
    try:
        return (folder / REPORT).lstat().st_mtime
    except OSError:
        return float("inf")


def _note(home: Path, gone: int) -> None:
    """Those who remove at once may count less: nothing depends on it."""
    now = Removed(removed(home).number + gone, time.time())
    with contextlib.suppress(OSError):
        replace_name(home / _REMOVED, msgspec.json.encode(now), 0o600)
