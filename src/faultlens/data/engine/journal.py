"""Keeps what has been found, piece by piece, so that a scan that was interrupted can go on."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from faultlens.data.engine.pool import Job
from faultlens.errors import FaultlensError
from faultlens.fs.state_dir import home
from faultlens.records.scan import SCHEMA_VERSION, Checked, Piece
from faultlens.text.file_names import to_text

SYNC_S = 5.0
AGAIN = frozenset({"changed", "unreadable", "unsupported"})  # what may be different next time
MAX_AGE_S = 30 * 24 * 3600.0

Key = tuple[str, str, int, int]


def default_place(roots: Sequence[str], job: Job) -> Path:
    """One for each question: the same paths, looked at in the same way."""
    where = [to_text(path) for path in (os.getcwd(), *roots)]
    question = msgspec.json.encode([SCHEMA_VERSION, where, job.wanted, job.decoding])
    return home() / "scans" / f"{hashlib.sha256(question).hexdigest()[:24]}.jsonl"


class Journal:
    def __init__(self, path: Path, resume: bool) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_old(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise FaultlensError("The same scan is already running.", f"Wait for it ({path}).") from error
        self._known = self._read() if resume else {}
        if not resume:
            os.ftruncate(self._descriptor, 0)
        self._synced = time.monotonic()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync(self._descriptor)
        os.close(self._descriptor)

    def known(self, piece: Piece) -> Checked | None:
        """What was found in it, if the file is still the same."""
        line = self._known.get(_key(piece))
        if line is None:
            return None
        checked = msgspec.json.decode(os.pread(self._descriptor, line[1], line[0]), type=Checked)
        return checked if checked.piece == piece else None

    def add(self, checked: Checked) -> None:
        os.write(self._descriptor, msgspec.json.encode(checked) + b"\n")
        if time.monotonic() - self._synced > SYNC_S:
            os.fsync(self._descriptor)
            self._synced = time.monotonic()

    def _read(self) -> dict[Key, tuple[int, int]]:
        """Where each piece stands. A last line that was cut off is cut off for good."""
        known: dict[Key, tuple[int, int]] = {}
        at = 0
        with open(self._path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                try:
                    checked = msgspec.json.decode(line, type=Checked)
                except msgspec.MsgspecError:
                    break
                if _is_final(checked):
                    known[_key(checked.piece)] = (at, len(line))
                at += len(line)
        os.ftruncate(self._descriptor, at)
        return known


def _is_final(checked: Checked) -> bool:
    """Not so where another time more may be seen: what is missing may have been installed."""
    again = any(flaw.kind in AGAIN for flaw in checked.flaws)
    return not again and not any(each.advice for each in checked.unchecked)


def _key(piece: Piece) -> Key:
    return piece.path, piece.format, piece.start, piece.end


def _remove_old(path: Path) -> None:
    for other in path.parent.glob("*.jsonl"):
        try:
            if other != path and time.time() - other.stat().st_mtime > MAX_AGE_S:
                other.unlink()
        except OSError:
            continue
