"""Where reports are kept: one folder a crash, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from faultlens.errors import FaultlensError
from faultlens.fs.atomic import replace_file, sync_folder, write_synced
from faultlens.fs.state_dir import home
from faultlens.records import report_file
from faultlens.records.crash import OutcomeKind
from faultlens.records.report_file import Report
from faultlens.report.headline import headline, program_name
from faultlens.store.keeping import REPORT, SUMMARY, UNFINISHED, make_room, read_regular
from faultlens.text.safe import one_line

_NAME = re.compile(r"(?P<time>\d{8}T\d{6}Z)-[\w.+-]+-(?P<id>[0-9a-f]{8})")
_TIME = "%Y%m%dT%H%M%SZ"
_CLOCK_SLACK_S = 60.0  # between machines that share a folder
_MAX_SUMMARY = 1 << 20
_NAME_IS_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)

_REASONS = {
    errno.EROFS: "is read-only",
    errno.EACCES: "may not be written",
    errno.EPERM: "may not be written",
    errno.ENOSPC: "is on a full disk",
    errno.EDQUOT: "is over its disk quota",
    errno.ENOTDIR: "is not a folder",
    errno.EEXIST: "is not a folder",
}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One kept report, as a list shows it."""

    id: str  # eight hexadecimal digits, enough to name the report
    name: str  # of its folder
    time: float | None = None  # of the crash
    kind: OutcomeKind | None = None
    signal: str | None = None
    headline: str = ""
    owner: int | None = None  # user id of whoever wrote it, if somebody else


def save(report: Report) -> Path:
    """Keep the report; returns the path of its report.json. Older reports make room (keeping.py)."""
    folder = home()
    try:
        return _save(report, folder)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror or error}")
        raise FaultlensError(
            f"The report could not be kept: {folder} {reason}.",
            "Set FAULTLENS_HOME to a folder with free space that you may write.",
        ) from error


def listing() -> list[Entry]:
    """The kept reports, newest first."""
    return [_entry(folder) for folder in reversed(_folders(home()))]


def find(name: str | None = None) -> Path:
    """The report.json meant by a path, a crash folder or the beginning of an id; without any, the latest of one's own,
    or of others where there are none."""
    folders = _folders(home())
    if name is None:
        if not folders:
            raise FaultlensError(f"There are no reports in {home()} yet.", "`faultlens run` writes them.")
        return ([folder for folder in folders if _is_mine(folder)] or folders)[-1] / REPORT
    if path := _existing(name):
        return path
    meant = [folder for folder in folders if name and _is_meant(folder, name)]
    shown = one_line(name, 120)
    if len(meant) == 1:
        return meant[0] / REPORT
    if meant:
        ids = ", ".join(_id(folder) for folder in meant[:8])
        raise FaultlensError(f"{shown!r} is the beginning of {len(meant)} reports: {ids}.", "Give more of it.")
    raise FaultlensError(
        f"There is no report {shown!r}.", "`faultlens show --list` names those there are; a path works too."
    )


def is_kept(path: Path) -> bool:
    """Whether it is one of the reports kept here. Who wrote it is another question (trust.py)."""
    return path.name == REPORT and path.parent.resolve() in {folder.resolve() for folder in _folders(home())}


def identity(path: Path) -> str:
    """Eight hexadecimal digits that name a report, kept or not."""
    return _id(path.parent) if is_kept(path) else hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def update(path: Path, report: Report) -> None:
    """Put a report in the place of the kept one, in one step; its name stays."""
    try:
        replace_file(path, report_file.to_json(report), 0o600)
    except OSError as error:
        raise FaultlensError(
            f"{path} could not be written: {error.strerror}.", "The report stays as it was."
        ) from error


# -------------------------------------------------------------------------------------------- saving


def _save(report: Report, home: Path) -> Path:
    data = report_file.to_json(report)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = _name(report, data)
    unfinished = home / f"{UNFINISHED}{os.urandom(8).hex()}"
    unfinished.mkdir(mode=0o700)
    try:
        with _opened(unfinished) as inside:
            write_synced(Path(REPORT), data, 0o600, inside)
            write_synced(Path(SUMMARY), msgspec.json.encode(_summary(name, report)), 0o600, inside)
        sync_folder(unfinished)
        folder = _publish(unfinished, home, name, data)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    sync_folder(home)
    make_room(home, [each for each in _folders(home) if _is_mine(each)], keep=folder)
    return folder / REPORT


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """The folder that was just made: where others may write as well, another could stand in its place by now."""
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(inside).st_uid != os.geteuid():
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(folder))
        yield inside
    finally:
        os.close(inside)


def _publish(unfinished: Path, home: Path, name: str, data: bytes) -> Path:
    """Give it its name. The same report again is one report; another one with the same checksum gets another id."""
    while True:
        try:
            unfinished.rename(home / name)  # never takes the place of a folder that has something in it
            return home / name
        except OSError as error:
            if error.errno not in _NAME_IS_TAKEN:
                raise
        with contextlib.suppress(OSError, ValueError):
            if read_regular(home / name / REPORT, len(data) + 1) == data:
                shutil.rmtree(unfinished, ignore_errors=True)
                return home / name
        name = name[:-8] + os.urandom(4).hex()


def _name(report: Report, data: bytes) -> str:
    """Names sort by the second of saving."""
    now = _clock(time.time())
    outcome = report.crash.outcome
    parts = (program_name(report.crash), outcome.signal or outcome.kind)
    program, end = (re.sub(r"[^\w.+-]+", "_", part, flags=re.ASCII)[:40] or "_" for part in parts)
    return f"{now}-{program}-{end}-{hashlib.sha256(data).hexdigest()[:8]}"


def _summary(name: str, report: Report) -> Entry:
    crash = report.crash
    return Entry(
        id=name[-8:],
        name=name,
        time=crash.time,
        kind=crash.outcome.kind,
        signal=crash.outcome.signal,
        headline=headline(crash),
    )


# ------------------------------------------------------------------------------------------- reading


def _folders(home: Path) -> list[Path]:
    """The crash folders, oldest first; whatever else lies there is not ours. What a wrong clock has dated in the future
    comes before all others: it would be the latest for as long."""
    now = _clock(time.time() + _CLOCK_SLACK_S)

    def age(folder: Path) -> tuple[bool, str, int, str]:
        saved = folder.name[: len(now)]
        return saved <= now, saved, _saved_at(folder), folder.name

    return sorted(_ours(home), key=age)


def _saved_at(folder: Path) -> int:
    """In nanoseconds, by the file that is written once: several reports may be saved within the second of a name."""
    try:
        return (folder / SUMMARY).lstat().st_mtime_ns
    except OSError:
        return 0


def _ours(home: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(home))
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) and _is_file(path / REPORT):
            yield path


def _is_file(path: Path) -> bool:
    """And no link to one: who else may write here could let it point anywhere."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _is_mine(folder: Path) -> bool:
    return _owner(folder) == os.geteuid()


def _owner(folder: Path) -> int | None:
    """Of the folder and its report; None where two share in it, or it is gone."""
    try:
        users = {folder.lstat().st_uid, (folder / REPORT).lstat().st_uid}
    except OSError:
        return None
    return users.pop() if len(users) == 1 else None


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime(_TIME)


def _entry(folder: Path) -> Entry:
    owner = _owner(folder)
    whose = None if owner == os.geteuid() else owner
    try:
        summary = msgspec.json.decode(read_regular(folder / SUMMARY, _MAX_SUMMARY), type=Entry)
        return msgspec.structs.replace(summary, id=_id(folder), name=folder.name, owner=whose)
    except (OSError, ValueError):
        pass  # no summary, or a damaged one: look at the report itself
    try:
        summary = _summary(folder.name, report_file.read(folder / REPORT))
        return msgspec.structs.replace(summary, owner=whose)
    except FaultlensError:
        return Entry(id=_id(folder), name=folder.name, headline="(damaged report)", owner=whose)


def _existing(name: str) -> Path | None:
    path = Path(name)
    try:
        path = path / REPORT if path.is_dir() else path
        return path if path.is_file() else None
    except (OSError, ValueError):  # too long, or with characters that no path has
        return None


def _id(folder: Path) -> str:
    return folder.name[-8:]


def _is_meant(folder: Path, name: str) -> bool:
    return folder.name.startswith(name) or _id(folder).startswith(name)
