"""A Python that has faultlens as a plain `pip install` leaves it: with what it depends on, and without the extras."""

from __future__ import annotations

import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

import faultlens


def core_python(folder: Path) -> Path:
    """In a new environment, whose packages are links to those of this one."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "faultlens").symlink_to(Path(faultlens.__file__).parent)
    pending, seen = ["faultlens"], set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            distribution = metadata.distribution(name)
            _link(distribution, site)
            pending += _requirements(distribution)
    return folder / "bin" / "python"


def _requirements(distribution: metadata.Distribution) -> list[str]:
    needed = map(Requirement, distribution.requires or ())
    return [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]


def _link(distribution: metadata.Distribution, site: Path) -> None:
    for file in distribution.files or ():
        top, there = file.parts[0], site / file.parts[0]
        if top not in ("..", "__pycache__") and not top.endswith(".pth") and not there.exists():
            there.symlink_to(distribution.locate_file(top))
