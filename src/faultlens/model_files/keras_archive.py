"""The `.keras` format: a zip archive of the configuration and the weights."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from faultlens.model_files import code, hdf5, pickled
from faultlens.model_files.keras_config import new_in_3
from faultlens.model_files.record import Damage, Saved
from faultlens.model_files.regular import opened, size_of

CONFIG, METADATA = "config.json", "metadata.json"
WEIGHTS = ("model.weights.h5", "model.weights.npz", "model.weights.json")
MAX_DIRECTORY = 16 << 20
MAX_JSON = 64 << 20
QUICK = 32 << 20  # bytes: archives up to here are always read whole
MAX_RATIO = 100  # weights hardly shrink: what grows more than this is no model
CHUNK = 1 << 20
_END, _END_64 = b"PK\5\6", b"PK\6\6"
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what Keras writes
# What the zip reader may raise over foreign bytes.
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError)


def read(path: Path, deep: bool) -> Saved:
    size = size_of(path) or 0
    with opened(path) as file:
        what = _unreadable(file, size)
        if what is not None:
            return Saved(path=path, kind="Keras archive", files=1, size=size, damages=(Damage(path, what),))
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(path, archive, size, deep)
        except _DAMAGED as error:
            return Saved(path=path, kind="Keras archive", files=1, size=size, damages=(Damage(path, _words(error)),))


def _read(path: Path, archive: zipfile.ZipFile, size: int, deep: bool) -> Saved:
    members = {member.filename: member for member in archive.infolist()}
    if CONFIG not in members and (member := pickled.member_of(archive)) is not None:
        return pickled.read_archive(path, archive, member, size)
    weights = next((name for name in WEIGHTS if name in members), None)
    total = sum(member.file_size for member in members.values())
    believable = total <= max(size, QUICK) * MAX_RATIO
    damages: list[Damage] = []
    for name in (CONFIG, METADATA):
        if name not in members:
            damages.append(Damage(path, f"has no {name}"))
    if weights is None:
        damages.append(Damage(path, "has no weights (model.weights.h5)"))
    metadata, config = (_json(archive, members.get(name)) for name in (METADATA, CONFIG))
    damages += [Damage(path, what) for what in (metadata, config) if isinstance(what, str)]
    if weights == "model.weights.h5" and (what := _weights_damage(archive, members[weights])):
        damages.append(Damage(path, f"its {weights} {what}"))
    checked = not damages and believable and (deep or total <= QUICK)
    if checked:
        damages += [Damage(path, what) for what in _wrong_checksums(archive)]
    return Saved(
        path=path,
        kind="Keras archive",
        files=1,
        size=size,
        weights=members[weights].file_size if weights else 0,
        writers=tuple(_writers(metadata)),
        new_in_keras_3=new_in_3(json.dumps(config)),
        damages=tuple(damages),
        code=code.in_config(json.dumps(config)),
        notes=() if believable else (f"it says that it holds {total} bytes, too many to be a model: not unpacked",),
        checked=checked,
    )


def _unreadable(file: BinaryIO, size: int) -> str | None:
    """What keeps zip readers out, and what would keep this one busy; None for an archive that can be opened."""
    if size == 0:
        return "is empty: a save began and did not end"
    tail_start = max(0, size - (1 << 16) - 22)
    file.seek(tail_start)
    tail = file.read()
    end = tail.rfind(_END)
    if end < 0 or len(tail) - end < 22:
        file.seek(0)
        begins = file.read(2) == b"PK"
        return "is cut off: the directory at the end of the archive is missing" if begins else "is not a zip archive"
    directory = struct.unpack_from("<I", tail, end + 12)[0]
    if directory == 0xFFFFFFFF:
        large = tail.rfind(_END_64)
        directory = struct.unpack_from("<Q", tail, large + 40)[0] if large >= 0 and len(tail) - large >= 56 else 0
    return f"has a directory of {directory} bytes, too many for a model" if directory > MAX_DIRECTORY else None


def _json(archive: zipfile.ZipFile, member: zipfile.ZipInfo | None) -> dict[str, object] | str:
    """The contents, or what is wrong with them."""
    if member is None or member.file_size > MAX_JSON or member.compress_type not in _KNOWN:
        return {}
    try:
        with archive.open(member) as file:
            contents = json.loads(file.read(MAX_JSON))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return f"its {member.filename} is no JSON"
    except _DAMAGED as error:
        return f"its {member.filename} {_words(error)}"
    return contents if isinstance(contents, dict) else f"its {member.filename} is no JSON object"


def _weights_damage(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str | None:
    """The header of the HDF5 file within, against the length that the archive gives."""
    if member.compress_type not in _KNOWN:
        return None
    try:
        with archive.open(member) as file:
            begin = file.read(4096)
    except _DAMAGED as error:
        return _words(error)
    return hdf5.damage(lambda offset, length: begin[offset : offset + length], member.file_size)


def _wrong_checksums(archive: zipfile.ZipFile) -> Iterator[str]:
    for member in archive.infolist():
        if member.compress_type not in _KNOWN:
            continue
        try:
            with archive.open(member) as file:
                while file.read(CHUNK):
                    pass
        except _DAMAGED as error:
            yield f"its {member.filename} {_words(error)}"


def _writers(metadata: dict[str, object] | str) -> Iterator[tuple[str, str]]:
    if isinstance(metadata, dict):
        version, date = metadata.get("keras_version"), metadata.get("date_saved")
        if isinstance(version, str):
            yield "Keras", version[:40] + (f" on {date[:40].replace('@', ' at ')}" if isinstance(date, str) else "")


def _words(error: BaseException) -> str:
    if isinstance(error, zipfile.BadZipFile) and "CRC" in str(error):
        return "has a wrong checksum"
    if isinstance(error, EOFError):
        return "is cut off"
    return "is damaged: " + " ".join(str(error).split())[:120]
