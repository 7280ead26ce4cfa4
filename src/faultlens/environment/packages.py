"""Which Python a process ran and which packages it could import, found from the outside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from faultlens.crash import Mapping, Package, PythonInfo
from faultlens.environment.procfs import read_fields
from faultlens.loader_variables import is_ours

LIBPYTHON = re.compile(r"/(?:libpython|python)(3\.\d+)[a-z]?(?:\.so[\d.]*)?$")
PACKAGE_FOLDER = re.compile(r"^(.*/lib(?:64)?/python3(?:\.\d+)?t?/(?:site|dist)-packages)/")
LIBRARY_OF = re.compile(r"/lib(?:64)?/python(3\.\d+)t?/(?:(?:site|dist)-packages|lib-dynload)/")
_METADATA = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-py3[.\d]*)?\.(?:dist|egg)-info")


def find_python(mappings: Iterable[Mapping], executable: str | None, prefix: str | None = None) -> PythonInfo | None:
    """Judged by the files that are mapped, so that it works for a core and when Python cannot run.

    `prefix` is the virtual environment, where one is known (VIRTUAL_ENV or the command)."""
    named = {mapping.path for mapping in mappings if mapping.path and mapping.path.startswith("/")}
    paths = sorted(path for path in named if not is_ours(path))
    version = _first(LIBPYTHON, paths) or _first(LIBRARY_OF, paths)
    if version is None:
        return None
    mapped = sorted({match[1] for path in paths if (match := PACKAGE_FOLDER.match(path))})
    prefix = prefix or _virtual_environment(mapped)
    root = prefix or (str(Path(executable).parent.parent) if executable else None)
    searched = package_folders(Path(root), version) if root else []
    # What is mapped from elsewhere was found first: PYTHONPATH and the user's own folder go before the others.
    folders = [folder for folder in mapped if folder not in searched] + searched
    return PythonInfo(
        version=version,
        executable=executable,
        prefix=prefix,
        packages=tuple(sorted(_packages(folders), key=lambda package: package.name.lower())),
    )


def package_folders(root: Path, version: str) -> list[str]:
    """Where a Python looks for packages by itself, first match first."""
    settings = read_fields(root / "pyvenv.cfg", "=")
    own = [f"{root}/{library}/python{version}/site-packages" for library in ("lib", "lib64")]
    if "home" in settings:
        shared = settings.get("include-system-site-packages", "").lower() == "true"
        return own + (package_folders(Path(settings["home"]).parent, version) if shared else [])
    if str(root) == "/usr":  # Debian's Python, which leaves site-packages to Pythons that are built by hand
        own = [f"/usr/local/lib/python{version}/dist-packages", "/usr/lib/python3/dist-packages", *own]
    return own


def _virtual_environment(folders: Iterable[str]) -> str | None:
    """The one whose packages are mapped: the command need not tell it."""
    roots = sorted(Path(folder).parents[2] for folder in folders)
    return next((str(root) for root in roots if (root / "pyvenv.cfg").is_file()), None)


def _packages(folders: Iterable[str]) -> set[Package]:
    """From the names of the *.dist-info folders, without importing or parsing anything."""
    found: dict[str, Package] = {}
    for folder in folders:
        for entry in sorted(Path(folder).glob("*-info")):
            if match := _METADATA.fullmatch(entry.name):
                found.setdefault(match["name"].lower(), Package(name=match["name"], version=match["version"]))
    return set(found.values())


def _first(pattern: re.Pattern[str], paths: Iterable[str]) -> str | None:
    return next((match[1] for path in paths if (match := pattern.search(path))), None)
