"""`--quarantine`: clean copies of files with bad parts, all of them or none; the originals are left as they are."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from faultlens.data.findings import Findings, same
from faultlens.data.quarantine.clean_copy import NoCopyError, write_clean
from faultlens.data.quarantine.names import LIST, UNFINISHED, Names
from faultlens.data.source import is_remote, opened
from faultlens.errors import FaultlensError
from faultlens.fs.access import take_access
from faultlens.fs.atomic import sync_folder, write_synced
from faultlens.records.crash import Record
from faultlens.records.scan import Flaw, Identity, Scan, Scanned
from faultlens.text.file_names import to_name, to_text

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Tell = Callable[[str], None]


class LeftOut(Record, frozen=True):
    """A part that the copy does not have."""

    kind: str
    reason: str
    record: int | None = None
    offset: int | None = None
    size: int | None = None
    member: str = ""


class Copied(Record, frozen=True, omit_defaults=False):
    """One bad file."""

    path: str
    format: str
    left_out: tuple[LeftOut, ...]
    copy: str | None = None  # below the folder
    identity: Identity | None = None  # of the copy: only such a file is replaced by a later run
    remark: str = ""  # why there is no copy, or what else it lacks


class Quarantined(Record, frozen=True):
    folder: str
    files: tuple[Copied, ...]

    @property
    def copies(self) -> int:
        return sum(file.copy is not None for file in self.files)


def quarantine(scan: Scan, folder: Path, tell: Tell) -> Quarantined:
    """Writes clean copies of the files with errors below `folder`, and a list of them. `tell` hears what goes on."""
    findings = Findings(scan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder), _workplace(folder) as unfinished:
            earlier = [file for file in _listed(folder) if _is_ours(folder, file)]
            names = Names(folder, scan.roots, ours={str(file.copy) for file in earlier})
            files = []
            for number, path in enumerate(findings.paths()):
                files.append(_copied(findings, path, unfinished / str(number), names))
                tell(_told(files[-1]))
            _put_in_place(folder, unfinished, files, earlier)
    except OSError as error:
        raise FaultlensError(
            f"No clean copies were written to {folder}: {error.strerror or error}.",
            "Give --quarantine a folder that can be written to, on a disk with room for them.",
        ) from error
    return Quarantined(folder=to_text(str(folder)), files=tuple(files))


def _copied(findings: Findings, path: str, temporary: Path, names: Names) -> Copied:
    # Without the record of a file nobody knows whether it is still the same.
    file = findings.file(path) or Scanned(path=path, format="", size=0, records=0, identity=Identity(size=-1))
    flaws = findings.flaws(path)
    listed = Copied(path=file.path, format=file.format, left_out=tuple(map(_left_out, flaws)))
    try:
        if path in findings.untold:
            raise NoCopyError(f"It has {file.errors} bad parts, and not all are listed: there is no copy.")
        name = names.name_for(path)
        lost = _write(file, flaws, temporary)
    except NoCopyError as reason:
        temporary.unlink(missing_ok=True)
        return msgspec.structs.replace(listed, remark=str(reason))
    return msgspec.structs.replace(listed, copy=name, identity=_identity(temporary), remark=lost)


def _write(file: Scanned, flaws: list[Flaw], temporary: Path) -> str:
    """From a file that stays the same from the first to the last byte."""
    with open(temporary, "xb") as written:
        try:
            with opened(file.path) as source:
                if not same(file.identity, source.identity()):
                    raise NoCopyError("It changed since it was scanned: scan it again.")
                clean = write_clean(source, file.identity.size, file.format, flaws, written)
                if not same(file.identity, source.identity()):
                    raise NoCopyError("It changed while it was copied: scan it again.")
            written.flush()
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise
            raise NoCopyError(f"It cannot be read: {error.strerror or error}.") from error
        if not is_remote(file.path):
            take_access(Path(to_name(file.path)), temporary)  # a copy is for whom the original is
        os.fsync(written.fileno())
    return clean.lost


def _put_in_place(folder: Path, unfinished: Path, files: list[Copied], earlier: list[Copied]) -> None:
    """What can fail for want of room comes first; then there are only renames."""
    listing = unfinished / LIST
    write_synced(listing, msgspec.json.format(msgspec.json.encode(files)))
    copies = [(number, folder / to_name(file.copy)) for number, file in enumerate(files) if file.copy]
    for _, target in copies:
        target.parent.mkdir(parents=True, exist_ok=True)
    for number, target in copies:
        (unfinished / str(number)).rename(target)
    listing.rename(folder / LIST)
    current = {file.copy for file in files}
    for file in earlier:
        if file.copy and file.copy not in current:
            (folder / to_name(file.copy)).unlink(missing_ok=True)
    for place in {folder, *(target.parent for _, target in copies)}:
        sync_folder(place)


def _listed(folder: Path) -> list[Copied]:
    """What an earlier run left here."""
    try:
        return msgspec.json.decode((folder / LIST).read_bytes(), type=list[Copied])
    except FileNotFoundError:
        return []
    except msgspec.DecodeError as error:
        raise FaultlensError(f"{folder / LIST} is not from faultlens.", "Give --quarantine another folder.") from error


def _is_ours(folder: Path, file: Copied) -> bool:
    """Still as it was written: nobody else has put anything under that name."""
    try:
        return file.copy is not None and _identity(folder / to_name(file.copy)) == file.identity
    except OSError:
        return False


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """Copies grow here; what a killed run left is thrown away."""
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(0o700)
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two runs must not write to one folder. The lock ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FaultlensError(f"Another run writes to {folder}.", "Wait for it, or give another folder.") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)


def _told(file: Copied) -> str:
    if file.copy is None or file.identity is None:
        return f"{file.path}: {file.remark}"
    parts = len(file.left_out)
    return f"{file.path}: copied to {file.copy} without {parts} bad part{'s' * (parts != 1)}. {file.remark}".rstrip()


def _left_out(flaw: Flaw) -> LeftOut:
    place = flaw.place
    return LeftOut(
        kind=flaw.kind,
        reason=flaw.reason,
        record=place.record,
        offset=place.offset,
        size=place.size,
        member=place.member,
    )


def _identity(path: Path) -> Identity:
    state = path.stat()
    return Identity(size=state.st_size, modified=state.st_mtime_ns)
