"""Pickles: Python's own, joblib's, and those inside PyTorch's archives. Loading one would run what it names."""

from __future__ import annotations

import zipfile
from pathlib import Path

from faultlens.model_files import code
from faultlens.model_files.record import Damage, Saved
from faultlens.model_files.regular import opened, size_of

SUFFIXES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")
PROTOCOLS = tuple(bytes((0x80, number)) for number in (2, 3, 4, 5))
MEMBER = "data.pkl"  # of PyTorch's archives
MAX_READ = 64 << 20
RAW = "what follows its first array cannot be read without running it"


def is_pickle(begin: bytes, name: str) -> bool:
    return begin.startswith(PROTOCOLS) and name.endswith(SUFFIXES)


def read(path: Path) -> Saved:
    size = size_of(path) or 0
    with opened(path) as file:
        data = file.read(MAX_READ)
    found, whole = code.in_pickle(data)
    damages: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    if not whole and size <= MAX_READ and b"joblib" not in data[:4096]:
        damages = (Damage(path, "is cut off, or damaged: the pickle does not end"),)
    elif not whole:
        notes = (RAW,)
    return Saved(path, "pickle", 1, size, damages=damages, notes=notes, code=found)


def member_of(archive: zipfile.ZipFile) -> zipfile.ZipInfo | None:
    """The pickle of an archive that PyTorch wrote."""
    return next((each for each in archive.infolist() if each.filename.rpartition("/")[2] == MEMBER), None)


def read_archive(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, size: int) -> Saved:
    """Raises what the zip reader raises over foreign bytes."""
    with archive.open(member) as file:
        found, whole = code.in_pickle(file.read(MAX_READ))
    damages = () if whole else (Damage(path, f"has a {MEMBER} that does not end"),)
    broken = None if damages else archive.testzip()
    if broken is not None:
        damages = (Damage(path, f"has a wrong checksum in {broken[:80]}"),)
    return Saved(path, "PyTorch file", 1, size, damages=damages, code=found, checked=True)
