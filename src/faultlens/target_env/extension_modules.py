"""For which Python the compiled modules of a package were built, read from their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# "_conv.cpython-312-x86_64-linux-gnu.so"; letters after the number mean a build with other settings.
_TAG = re.compile(r"\.cpython-(\d)(\d+)[a-z]*-")
_LIBRARY = re.compile(r"^lib.*\.so")


def built_for(name: str) -> tuple[int, int] | None:
    """The one Python that would load a module of this name; None where several would: "x.abi3.so", "x.so"."""
    match = _TAG.search(name)
    return (int(match[1]), int(match[2])) if match else None


def loads(name: str, version: tuple[int, ...] | None) -> bool:
    """Not where the name says that it is for another Python."""
    tagged = built_for(name)
    return tagged is None or version is None or tagged == version[:2]


def for_others_only(files: Iterable[Path], version: tuple[int, ...] | None) -> tuple[Path, ...]:
    """All modules of a package, where this Python would load none of them; nothing where it loads one."""
    modules = [file for file in files if built_for(file.name) or not _LIBRARY.match(file.name)]
    return () if any(loads(file.name, version) for file in modules) else tuple(modules)
