"""Which packages are installed, read from their metadata as `importlib.metadata` does it: nothing is imported."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faultlens.system.procfs import read_text

_NAMED = re.compile(r"^(?P<name>[^-]+)(?:-(?P<version>[^-]+?)(?:-.+)?)?\.(?:dist|egg)-info$", re.I)
_EGG = re.compile(r"^(?P<name>[^-]+)(?:-(?P<version>[^-]+?)(?:-.+)?)?\.egg$", re.I)
_EGG_INFO = "egg-info"  # inside of an egg
_NAME = re.compile(r"^Name:[ \t]*(\S.*?)\s*$", re.M | re.I)
_VERSION = re.compile(r"^Version:[ \t]*(\S.*?)\s*$", re.M | re.I)
_REQUIRES = re.compile(r"^Requires-Dist:\s*(.+)$", re.MULTILINE)
_DESCRIBING = ("METADATA", "PKG-INFO", "")  # "": the .egg-info is itself the file
MAX_HEADER = 1 << 20


@dataclass(frozen=True)
class Distribution:
    name: str
    version: str
    folder: Path  # the site-packages folder, or the archive, that it is in
    metadata: Path  # its .dist-info or .egg-info

    @property
    def key(self) -> str:
        """The name as requirements compare it."""
        return normal(self.name)

    @cached_property
    def requires(self) -> tuple[str, ...]:
        """Its requirements as written: "numpy<2.0.0,>=1.23.5"."""
        return tuple(line.strip() for line in _REQUIRES.findall(_header(self.metadata, self.folder)))

    @cached_property
    def record(self) -> str:
        """Its RECORD: a line "path,sha256=…,size" for each file."""
        return read_text(self.metadata / "RECORD") or ""

    @cached_property
    def files(self) -> tuple[str, ...]:
        """What its RECORD lists, relative to `folder`; nothing where it has none."""
        lines = self.record.splitlines()
        return tuple(line.rsplit(",", 2)[0].strip('"') for line in lines if line.count(",") >= 2)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """What the wheel was built for: "cp311-cp311-manylinux_2_17_x86_64"."""
        text = read_text(self.metadata / "WHEEL") or ""
        return tuple(re.findall(r"^Tag:\s*(\S+)", text, re.MULTILINE))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(path: Iterable[str]) -> tuple[Distribution, ...]:
    """Each distribution once: the first on the path is the one that counts."""
    found: dict[str, Distribution] = {}
    for entry in path:
        for each in sorted(in_folder(Path(entry)), key=lambda each: each.key):
            found.setdefault(each.key, each)
    return tuple(found.values())


def in_folder(folder: Path) -> list[Distribution]:
    """All in one folder or archive, also several versions of one, which a broken installation leaves. The version is
    the one that it states; the name of its metadata tells it where these cannot be read."""
    found = []
    for name in _names(folder):
        match = _EGG.match(folder.name) if name.lower() == _EGG_INFO else _NAMED.match(name)
        if match is None:
            continue
        header = _header(folder / name, folder)
        stated, version = _NAME.search(header), _VERSION.search(header)
        if version or match["version"]:
            found.append(
                Distribution(
                    stated[1] if stated else match["name"],
                    version[1] if version else match["version"],
                    folder,
                    folder / name,
                )
            )
    return found


def _names(folder: Path) -> list[str]:
    """In the order in which the folder lists them: of two of one name Python takes the first."""
    try:
        if not os.path.isfile(folder):
            return os.listdir(folder)
        with zipfile.ZipFile(folder) as archive:
            return list(dict.fromkeys(name.partition("/")[0] for name in archive.namelist()))
    except (OSError, ValueError, zipfile.BadZipFile):
        return []


def _header(metadata: Path, folder: Path) -> str:
    """What describes it, without the long text that follows."""
    for name in _DESCRIBING:
        text = _archived(folder, f"{metadata.name}/{name}") if os.path.isfile(folder) else _text(metadata / name)
        if text:
            return text.decode("utf-8", "surrogateescape").replace("\r\n", "\n").partition("\n\n")[0]
    return ""


def _text(path: Path) -> bytes:
    try:
        if not os.path.isfile(path):  # a pipe would keep us waiting
            return b""
        with path.open("rb") as file:
            return file.read(MAX_HEADER)
    except (OSError, ValueError):
        return b""


def _archived(archive: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(name) as file:
            return file.read(MAX_HEADER)
    except (OSError, ValueError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        return b""
