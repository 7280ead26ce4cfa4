"""Which Python a process ran and which packages it could import, found from the outside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from faultlens.crash import Mapping, Package, PythonInfo

LIBPYTHON = re.compile(r"/(?:libpython|python)(3\.\d+)[a-z]?(?:\.so[\d.]*)?$")
SITE_PACKAGES = re.compile(r"^(.*/lib(?:64)?/python(3\.\d+)/(?:site|dist)-packages)/")
LIB_DYNLOAD = re.compile(r"^(.*/lib(?:64)?/python(3\.\d+))/lib-dynload/")


def find_python(mappings: Iterable[Mapping], executable: str | None, prefix: str | None = None) -> PythonInfo | None:
    """Judged by the files that are mapped, so that it works for a core and when Python cannot run.

    `prefix` is the virtual environment, where one is known (VIRTUAL_ENV or the command)."""
    paths = sorted({mapping.path for mapping in mappings if mapping.path and mapping.path.startswith("/")})
    version = _first(LIBPYTHON, paths, 1) or _first(SITE_PACKAGES, paths, 2) or _first(LIB_DYNLOAD, paths, 2)
    if version is None:
        return None
    folders = {match[1] for path in paths if (match := SITE_PACKAGES.match(path))}
    prefix = prefix or _virtual_environment(folders)
    for root in (prefix, str(Path(executable).parent.parent) if executable else None):
        if root:
            folders.add(f"{root}/lib/python{version}/site-packages")
    return PythonInfo(
        version=version,
        executable=executable,
        prefix=prefix,
        packages=tuple(sorted(_packages(folders), key=lambda package: package.name.lower())),
    )


def _virtual_environment(folders: Iterable[str]) -> str | None:
    """The one whose packages are mapped: the command need not tell it."""
    roots = sorted(Path(folder).parents[2] for folder in folders)
    return next((str(root) for root in roots if (root / "pyvenv.cfg").is_file()), None)


def _packages(folders: Iterable[str]) -> set[Package]:
    """From the names of the *.dist-info folders, without importing or parsing anything."""
    found: dict[str, Package] = {}
    for folder in sorted(folders):
        for entry in Path(folder).glob("*.dist-info") if Path(folder).is_dir() else ():
            name, _, version = entry.name.removesuffix(".dist-info").partition("-")
            found.setdefault(name.lower(), Package(name=name, version=version))
    return set(found.values())


def _first(pattern: re.Pattern[str], paths: Iterable[str], group: int) -> str | None:
    return next((match[group] for path in paths if (match := pattern.search(path))), None)
