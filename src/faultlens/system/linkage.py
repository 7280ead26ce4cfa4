"""Whether the symbols that a library imports are there, in the files that the loader would take."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator

from faultlens.system.binary import STB_GLOBAL, Binary
from faultlens.system.elf import ElfError
from faultlens.system.loader import Library, Process


def undefined_symbols(process: Process, library: Library) -> tuple[str, ...]:
    """What `library` imports and nobody defines to whom the loader would turn: those that were there from the
    start, the library itself and what it needs. Symbol versions are not compared."""
    scope = [*process.at_start, *(each for each in library.closure if each not in process.at_start)]
    return tuple(lacking(imports(library.path), (each.path for each in scope)))


def imports(path: str) -> tuple[str, ...]:
    """Symbols that must be found; weak ones need not be."""
    try:
        with Binary(path) as binary:
            return tuple(symbol.name for symbol in binary.imports() if symbol.binding == STB_GLOBAL)
    except (OSError, ElfError):
        return ()


def lacking(names: Iterable[str], paths: Iterable[str]) -> Iterator[str]:
    """Those of the names that none of the files exports."""
    missing = tuple(names)
    for path in paths:
        if not missing:
            return
        exported = exported_of(path, missing)
        missing = tuple(name for name in missing if name not in exported)
    yield from missing


def exported_of(path: str, names: Iterable[str]) -> frozenset[str]:
    """Those of the names that the file exports."""
    try:
        with Binary(path) as binary:
            return frozenset(name for name in names if binary.exports(name))
    except (OSError, ElfError):
        return frozenset()


def exports_of(path: str) -> tuple[str, ...]:
    try:
        with Binary(path) as binary:
            return tuple(symbol.name for symbol in binary.symbols() if symbol.defined and symbol.binding)
    except (OSError, ElfError):
        return ()


def shared_symbols(paths: Iterable[str]) -> dict[tuple[str, str], int]:
    """How many functions and variables two files both define, for each pair that has any. Weak ones, which every C++
    library has of every template that it uses, do not count. A second per million symbols."""
    first: dict[str, str] = {}
    found: Counter[tuple[str, str]] = Counter()
    for path in paths:
        try:
            with Binary(path) as binary:
                for symbol in binary.symbols():
                    if symbol.defined and symbol.binding == STB_GLOBAL and symbol.size:
                        other = first.setdefault(symbol.name, path)
                        if other != path:
                            found[other, path] += 1
        except (OSError, ElfError):
            continue
    return dict(found)


def same_content(one: str, other: str) -> bool:
    """Whether two files are the same build: by identity, else by build id and size, else byte by byte."""
    try:
        if os.path.samefile(one, other):
            return True
        if os.path.getsize(one) != os.path.getsize(other):
            return False
        with Binary(one) as first, Binary(other) as second:
            if first.build_id and second.build_id:
                return first.build_id == second.build_id
            size = os.path.getsize(one)
            return all(first.read(at, 1 << 20) == second.read(at, 1 << 20) for at in range(0, size, 1 << 20))
    except (OSError, ElfError):
        return False
