"""Which packages are installed, read from their metadata: nothing is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faultlens.environment.procfs import read_text

_METADATA = re.compile(r"^(?P<name>[^-]+)-(?P<version>[^-]+?)(?:-py[\d.]+)?\.(?P<kind>dist-info|egg-info)$")
_REQUIRES = re.compile(r"^Requires-Dist:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Distribution:
    name: str
    version: str
    folder: Path  # the site-packages folder it is in
    metadata: Path  # its .dist-info or .egg-info

    @property
    def key(self) -> str:
        """The name as requirements compare it."""
        return normal(self.name)

    @cached_property
    def requires(self) -> tuple[str, ...]:
        """Its requirements as written: "numpy<2.0.0,>=1.23.5"."""
        text = read_text(self.metadata / "METADATA") or read_text(self.metadata / "PKG-INFO") or ""
        return tuple(line.strip() for line in _REQUIRES.findall(text.partition("\n\n")[0]))

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
    """All in one folder, also several versions of one, which a broken installation leaves."""
    try:
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    except OSError:
        return []
    return [
        Distribution(match["name"], match["version"], folder, folder / name)
        for name in names
        if (match := _METADATA.match(name))
    ]
