"""Which Python a process ran and which packages it could import, found from the outside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from faultlens.records.crash import Mapping as Mapped
from faultlens.records.crash import Package, PythonInfo
from faultlens.system.loader_variables import is_ours
from faultlens.target_env.distributions import installed
from faultlens.target_env.search_path import search_path

LIBPYTHON = re.compile(r"/(?:libpython|python)(3\.\d+)[a-z]?(?:\.so[\d.]*)?$")
PACKAGE_FOLDER = re.compile(r"^(.*/lib(?:64)?/python3(?:\.\d+)?t?/(?:site|dist)-packages)/")
LIBRARY_OF = re.compile(r"/lib(?:64)?/python(3\.\d+)t?/(?:(?:site|dist)-packages|lib-dynload)(?:/|$)")


def find_python(
    mappings: Iterable[Mapped],
    executable: str | None,
    prefix: str | None = None,
    *,
    path: Sequence[str] = (),
    directory: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> PythonInfo | None:
    """Judged by the files that are mapped, so that it works for a core and when Python cannot run.

    `prefix` is the virtual environment, where one is known. `path` is the `sys.path` that the process had, whose
    relative entries start in `directory`; where it is not known, it is estimated from the folders and `variables`."""
    named = {mapping.path for mapping in mappings if mapping.path and mapping.path.startswith("/")}
    files = sorted(file for file in named if not is_ours(file))
    version = _first(LIBPYTHON, files) or _first(LIBRARY_OF, (*files, *path))
    if version is None:
        return None
    mapped = sorted({match[1] for file in files if (match := PACKAGE_FOLDER.match(file))})
    path = [str(Path(directory or "/", entry)) for entry in path]
    folders: Sequence[str] = path
    if not path:
        prefix = prefix or _virtual_environment(mapped)
        root = prefix or (str(Path(executable).parent.parent) if executable else None)
        searched = search_path(Path(root), version, variables or {}) if root else ()
        # What is mapped from elsewhere was found by the program, which may change its path as it likes.
        folders = (*(folder for folder in mapped if folder not in searched), *searched)
    return PythonInfo(
        version=version,
        executable=executable,
        prefix=prefix,
        path=tuple(path),
        packages=tuple(
            Package(name=each.name, version=each.version)
            for each in sorted(installed(folders), key=lambda each: each.key)
        ),
    )


def _virtual_environment(folders: Iterable[str]) -> str | None:
    """The one whose packages are mapped: the command need not tell it."""
    roots = sorted(Path(folder).parents[2] for folder in folders)
    return next((str(root) for root in roots if (root / "pyvenv.cfg").is_file()), None)


def _first(pattern: re.Pattern[str], paths: Iterable[str]) -> str | None:
    return next((match[1] for path in paths if (match := pattern.search(path))), None)
