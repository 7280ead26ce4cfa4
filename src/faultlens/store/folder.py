"""Where reports are kept: one folder a crash, written whole or not at all, bounded in number and size."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from faultlens import reportfile
from faultlens.crash import OutcomeKind
from faultlens.durable import replace_file, sync_folder, write_synced
from faultlens.errors import FaultlensError
from faultlens.home import home
from faultlens.report.headline import headline, program_name
from faultlens.reportfile import Report
from faultlens.safe_text import one_line

MAX_REPORTS = 100
MAX_BYTES = 500_000_000

REPORT = "report.json"
SUMMARY = "summary.json"
_NAME = re.compile(r"\d{8}T\d{6}Z-[\w.+-]+-(?P<id>[0-9a-f]{8})")
_UNFINISHED = re.compile(r"\.new-[0-9a-f]{8}-\d+")
_UNFINISHED_IS_LEFT_BEHIND_AFTER = 3600.0  # seconds

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


def save(report: Report) -> Path:
    """Keep the report; returns the path of its report.json. Older reports make room."""
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
    """The report.json meant by a path, a crash folder or the beginning of an id; without any, the latest."""
    folders = _folders(home())
    if name is None:
        if not folders:
            raise FaultlensError(f"There are no reports in {home()} yet.", "`faultlens run` writes them.")
        return folders[-1] / REPORT
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
    """Whether it is one of the reports kept here, and so of our own making."""
    return path.name == REPORT and path.resolve().parent in {folder.resolve() for folder in _folders(home())}


def identity(path: Path) -> str:
    """Eight hexadecimal digits that name a report, kept or not."""
    return _id(path.parent) if is_kept(path) else hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def update(path: Path, report: Report) -> None:
    """Put a report in the place of the kept one, in one step; its name stays."""
    try:
        replace_file(path, reportfile.to_json(report), 0o600)
    except OSError as error:
        raise FaultlensError(
            f"{path} could not be written: {error.strerror}.", "The report stays as it was."
        ) from error


# -------------------------------------------------------------------------------------------- saving


def _save(report: Report, home: Path) -> Path:
    data = reportfile.to_json(report)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = _name(report, data)
    unfinished = home / f".new-{name[-8:]}-{os.getpid()}"
    unfinished.mkdir(mode=0o700)
    try:
        write_synced(unfinished / REPORT, data, 0o600)
        write_synced(unfinished / SUMMARY, msgspec.json.encode(_summary(name, report)), 0o600)
        sync_folder(unfinished)
        unfinished.rename(home / name)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        # The same report in the same second is there already.
        if (home / name / REPORT).is_file():
            return home / name / REPORT
        raise
    sync_folder(home)
    _make_room(home, keep=home / name)
    return home / name / REPORT


def _name(report: Report, data: bytes) -> str:
    """Names sort by the time of saving."""
    now = datetime.fromtimestamp(time.time(), timezone.utc).strftime("%Y%m%dT%H%M%SZ")
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


def _make_room(home: Path, keep: Path) -> None:
    """Remove the oldest reports that are beyond the bounds, and what an interrupted save left behind."""
    for path in home.glob(".new-*"):
        with contextlib.suppress(OSError):
            old = time.time() - path.stat().st_mtime > _UNFINISHED_IS_LEFT_BEHIND_AFTER
            if old and _UNFINISHED.fullmatch(path.name):
                _remove(path)
    folders = [folder for folder in _folders(home) if folder != keep]
    sizes = [_size(folder) for folder in folders]
    number, total = len(folders) + 1, sum(sizes) + _size(keep)
    for folder, size in zip(folders, sizes, strict=True):
        if number <= MAX_REPORTS and total <= MAX_BYTES:
            return
        _remove(folder)
        number, total = number - 1, total - size


def _remove(folder: Path) -> None:
    """Remove the files we wrote, and the folder when nothing else is in it."""
    with contextlib.suppress(OSError):
        for name in (REPORT, SUMMARY):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _size(folder: Path) -> int:
    total = 0
    for name in (REPORT, SUMMARY):
        with contextlib.suppress(OSError):
            total += (folder / name).stat().st_size
    return total


# ------------------------------------------------------------------------------------------- reading


def _folders(home: Path) -> list[Path]:
    """The crash folders, oldest first; whatever else lies there is not ours."""
    return sorted(_ours(home))


def _ours(home: Path) -> Iterator[Path]:
    try:
        entries = list(os.scandir(home))
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) and (path / REPORT).is_file():
            yield path


def _entry(folder: Path) -> Entry:
    try:
        summary = msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Entry)
        return msgspec.structs.replace(summary, id=_id(folder), name=folder.name)
    except (OSError, ValueError):
        pass  # no summary, or a damaged one: look at the report itself
    try:
        return _summary(folder.name, reportfile.read(folder / REPORT))
    except FaultlensError:
        return Entry(id=_id(folder), name=folder.name, headline="(damaged report)")


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
