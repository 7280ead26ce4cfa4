"""What `faultlens.save` writes down beside a save: its files and variables with their checksums, who wrote it, when."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from faultlens.model_files.crc32c import crc32c
from faultlens.model_files.record import Damage
from faultlens.model_files.regular import opened, whole
from faultlens.records.crash import Record

Format = Literal["keras", "weights", "hdf5", "saved_model", "checkpoint"]
SCHEMA_VERSION = 1
CHUNK = 4 << 20
IN_WORDS: dict[Format, str] = {
    "keras": "Keras archive",
    "weights": "weights file",
    "hdf5": "HDF5 file",
    "saved_model": "SavedModel",
    "checkpoint": "checkpoint",
}


class SavedFile(Record, frozen=True):
    name: str  # below the save's folder; the empty name is the save itself
    size: int
    crc32c: int
    mtime_ns: int  # tells, without reading it, that a file is the one that was written


class SavedVariable(Record, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    crc32c: int


class Manifest(Record, frozen=True):
    generation: int
    format: Format
    time: float  # seconds since 1970
    files: tuple[SavedFile, ...]
    variables: tuple[SavedVariable, ...] = ()
    versions: dict[str, str] = {}  # noqa: RUF012 (msgspec copies it)
    training: dict[str, Any] = {}  # noqa: RUF012
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA_VERSION

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def read_manifest(path: Path) -> Manifest | None:
    """None where there is none, or none that can be understood."""
    try:
        manifest = msgspec.json.decode(whole(path), type=Manifest)
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if manifest.schema == SCHEMA_VERSION and all(map(_stays_inside, manifest.files)) else None


def _stays_inside(file: SavedFile) -> bool:
    return not file.name.startswith("/") and ".." not in Path(file.name).parts and "\0" not in file.name


def checksum(path: Path) -> int:
    crc = 0
    with opened(path) as file:
        while chunk := file.read(CHUNK):
            crc = crc32c(chunk, crc)
    return crc


def place_of(root: Path, file: SavedFile) -> Path:
    """Where a file of a save lies. A checkpoint's files are named by the ends of their names."""
    return root.with_name(root.name + file.name) if file.name.startswith(".") else root / file.name


def looks_like(manifest: Manifest, root: Path) -> bool:
    """Whether these are the very files that were written, as far as sizes and times tell."""
    return all(_stat(place_of(root, file)) == (file.size, file.mtime_ns) for file in manifest.files)


def differences(manifest: Manifest, root: Path, deep: bool = True) -> list[Damage]:
    """What is not as it was written; without `deep`, only what sizes tell."""
    found: list[Damage] = []
    for file in manifest.files:
        path = place_of(root, file)
        state = _stat(path)
        if state is None:
            found.append(Damage(path, "is missing"))
        elif state[0] != file.size:
            found.append(Damage(path, f"has {state[0]} bytes, {file.size} were written"))
        elif deep and checksum(path) != file.crc32c:
            found.append(Damage(path, "is not what was written: its checksum does not match"))
    return found


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_size, state.st_mtime_ns
