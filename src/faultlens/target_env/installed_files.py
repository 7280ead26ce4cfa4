"""Whether the files of a package are those that its wheel brought."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from faultlens.system import elf
from faultlens.system.binary import Binary
from faultlens.target_env.distributions import Distribution

State = Literal["whole", "missing", "forbidden", "damaged", "stripped", "other"]
CHUNK = 1 << 20
QUOTE = '"'  # around names with a comma
MOST_PARSED = 20
MUCH = 0.9  # an editor that leaves out the last line end seldom takes away more
# Folders from which neither `import tensorflow` nor `tf.keras` loads anything (seen with 2.15 and 2.21).
SPARED = frozenset(
    "tests test testing testdata kernel_tests benchmarks examples _examples doc f2py distutils _pyinstaller array_api "
    "typing licenses toco pip_package legacy_tf_layers".split()
)


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

    total: int  # those that are there
    changed: tuple[Path, ...]
    missing: tuple[Path, ...] = ()  # without those that no import needs
    cut: tuple[Path, ...] = ()  # shorter than they were, and not whole any more


def sources(package: Distribution, *, deep: bool = False) -> Sources:
    """By their sizes; by their sums too when there is time."""
    total = 0
    changed, missing, shorter = list[Path](), list[Path](), list[tuple[Path, int]]()
    for line in package.record.splitlines():
        if ".py," not in line or line.startswith(("..", "/")) or line.count(",") < 2:
            continue
        name, digest, size = line.rsplit(",", 2)
        place = f"{package.folder}/{name.strip(QUOTE)}"
        try:
            more = os.stat(place).st_size - int(size) if size.isdecimal() else 0
        except (FileNotFoundError, NotADirectoryError):
            if is_needed(name) and not os.path.exists(f"{place}c"):  # compiled ones may stand for them
                missing.append(Path(place))
            continue
        except OSError:
            continue
        total += 1
        if more < 0:
            shorter.append((Path(place), int(size)))
        if more or (deep and _differs(Path(place), digest)):
            changed.append(Path(place))
    cut = tuple(path for path, size_before in shorter[:MOST_PARSED] if is_cut(path, size_before))
    return Sources(total, tuple(path for path in changed if path not in cut), tuple(missing), cut)


def is_needed(name: str) -> bool:
    """Tests and tools are often taken out to save space."""
    *folders, file = name.split("/")
    return SPARED.isdisjoint(folders) and not file.startswith(("test_", "conftest")) and not file.endswith("_test.py")


def is_cut(path: Path, size: int) -> bool:
    """Whether a file that had this size is no Python now, or ends within a line with much of it gone; an edit that
    still is Python is the user's own affair."""
    try:
        text = path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in its texts
            ast.parse(text)
    except (SyntaxError, ValueError):
        return True
    except (OSError, RecursionError, MemoryError):
        return False
    return not text.endswith(b"\n") and len(text) < size * MUCH


def inspect(listed: Listed, *, deep: bool = False) -> File:
    """By its size; its content is read where that differs, or when there is time."""
    try:
        size = listed.path.stat().st_size
    except PermissionError:
        return File(listed, "forbidden", "this user may not look there")
    except OSError:
        return File(listed, "missing", "it is not there")
    if listed.size is not None and size != listed.size:
        return _changed(listed, size)
    if deep and _differs(listed.path, listed.digest):
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


def _differs(path: Path, digest: str) -> bool:
    """From what RECORD says. What cannot be read is not known to."""
    # Not at the top: the doctor starts without OpenSSL, which a broken environment may not have.
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    if not digest.startswith("sha256="):
        return False
    sum_ = sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                sum_.update(chunk)
    except OSError:
        return False
    return digest != "sha256=" + urlsafe_b64encode(sum_.digest()).decode().rstrip("=")
