"""What `import NAME` would find, without importing it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

_INIT = ("__init__.py", "__init__.pyc", "__init__.so")


class Module(NamedTuple):
    name: str
    place: Path  # the folder of a package, the file of a module
    entry: Path  # where on the path it was found
    kind: Literal["package", "module", "namespace"]


def would_import(name: str, path: Iterable[str | Path]) -> Module | None:
    """As Python decides: in each folder a package comes before a module; folders without `__init__.py` come last."""
    namespace: Module | None = None
    # As Python does, os.path passes over folders that may not be read; Path.is_file would raise.
    for entry in map(Path, path):
        folder = entry / name
        if any(os.path.isfile(folder / file) for file in _INIT):
            return Module(name, folder, entry, "package")
        file = _module_file(entry, name)
        if file is not None:
            return Module(name, file, entry, "module")
        if namespace is None and os.path.isdir(folder):
            namespace = Module(name, folder, entry, "namespace")
    return namespace


def hidden_folders(files: Iterable[Path], path: Iterable[str | Path]) -> set[Path]:
    """Folders of packages, among those the files are in, of which another copy comes first on the path."""
    entries = [Path(entry) for entry in path]
    tops = {entry / file.relative_to(entry).parts[0] for file in files for entry in entries if entry in file.parents}
    first = {name: would_import(name, entries) for name in {top.name for top in tops}}
    return {top for top in tops if (found := first[top.name]) and found.kind == "package" and found.place != top}


def _module_file(folder: Path, name: str) -> Path | None:
    for suffix in (".so", ".abi3.so", ".py", ".pyc"):
        if os.path.isfile(file := folder / f"{name}{suffix}"):
            return file
    # The tag of an extension module: "NAME.cpython-311-x86_64-linux-gnu.so".
    try:
        with os.scandir(folder) as entries:
            tagged = [e.name for e in entries if e.name.startswith(f"{name}.cpython-") and e.name.endswith(".so")]
    except OSError:
        return None
    return folder / min(tagged) if tagged else None
