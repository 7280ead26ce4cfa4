"""Whether the files of a package are those that its wheel brought."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from faultlens.doctor.distributions import Distribution
from faultlens.environment import elf
from faultlens.environment.binary import Binary

State = Literal["whole", "missing", "damaged", "stripped", "other"]
CHUNK = 1 << 20


class Listed(NamedTuple):
    """A line of a RECORD."""

    path: Path
    size: int | None
    digest: str  # "sha256=…", as written


class File(NamedTuple):
    listed: Listed
    state: State
    why: str = ""


def native_files(package: Distribution) -> Iterator[Listed]:
    for line in package.record.splitlines():
        if ".so" in line and line.count(",") >= 2:
            name, digest, size = line.rsplit(",", 2)
            name = name.strip('"')
            if name.endswith(".so") or ".so." in name.rpartition("/")[2]:
                yield Listed(package.folder / name, int(size) if size.isdecimal() else None, digest)


class Sources(NamedTuple):
    """Python files that a wheel brought."""

    total: int
    changed: tuple[Path, ...]  # without those that are missing


def sources(package: Distribution, top: str, *, deep: bool = False) -> Sources:
    """Those in its folder `top`, by their sizes; by their sums too when there is time."""
    total, changed = 0, []
    for line in package.record.splitlines():
        if ".py," not in line or not line.startswith(top):
            continue
        name, digest, size = line.rsplit(",", 2)
        place = f"{package.folder}/{name}"
        try:
            differs = size.isdecimal() and os.stat(place).st_size != int(size)
        except OSError:
            continue
        total += 1
        if differs or (deep and digest.startswith("sha256=") and _sha256(Path(place)) != digest):
            changed.append(Path(place))
    return Sources(total, tuple(changed))


def inspect(listed: Listed, *, deep: bool = False) -> File:
    """By its size; its content is read where that differs, or when there is time."""
    try:
        size = listed.path.stat().st_size
    except OSError:
        return File(listed, "missing", "it is not there")
    if listed.size is not None and size != listed.size:
        return _changed(listed, size)
    if deep and listed.digest.startswith("sha256=") and _sha256(listed.path) != listed.digest:
        return File(listed, "damaged", "its content differs from what the wheel brought")
    return File(listed, "whole")


def _changed(listed: Listed, size: int) -> File:
    sizes = f"{size} bytes, the wheel brought {listed.size}"
    try:
        with Binary(listed.path) as binary:
            end = max((part.offset + part.filesz for part in binary.segments if part.type == elf.PT_LOAD), default=0)
            if max(end, binary.header.shoff) > size:
                return File(listed, "damaged", f"it is cut off: {sizes}")
            symbols = any(part.type == elf.SHT_SYMTAB for part in elf.sections(binary.read, binary.header))
            smaller = listed.size is not None and size < listed.size
            return File(listed, "stripped" if smaller and not symbols else "other", sizes)
    except elf.ElfError as error:
        return File(listed, "damaged", f"{error}: {sizes}")
    except OSError as error:
        return File(listed, "other", f"{error.strerror}")


def _sha256(path: Path) -> str:
    # Not at the top: the doctor starts without OpenSSL, which a broken environment may not have.
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    sum_ = sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                sum_.update(chunk)
    except OSError:
        return ""
    return "sha256=" + urlsafe_b64encode(sum_.digest()).decode().rstrip("=")
