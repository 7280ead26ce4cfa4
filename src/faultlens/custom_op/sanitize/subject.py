"""What is to be sanitized: the sources, the library that the program loads, and how one is found from the other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faultlens.custom_op.building import CUDA, SOURCES
from faultlens.errors import FaultlensError
from faultlens.system.elf import ElfError
from faultlens.target_env.op_library import read_op

_UNIT = re.compile(r"DW_AT_(name|comp_dir)\s+:(?: \(.*?\):)? (.*)$")
_FATBIN = b".nv_fatbin"  # the section in which kernels are kept
_PREFIXES, _SUFFIXES = ("lib", "_"), ("_op", "_ops")


@dataclass(frozen=True)
class Subject:
    sources: tuple[Path, ...]  # empty: not known
    library: Path | None  # that the program loads; None: known by what it contains

    @cached_property
    def has_cuda(self) -> bool:
        """Whether there are kernels for a GPU in it."""
        if any(source.suffix == CUDA for source in self.sources):
            return True
        return self.library is not None and _FATBIN in self.library.read_bytes()

    @property
    def registers_ops(self) -> bool:
        if self.library is None:
            return False
        try:
            return read_op(self.library).registers_ops
        except (OSError, ElfError) as error:
            raise FaultlensError(
                f"{self.library} cannot be read: {error}.", "Name a library of this machine."
            ) from error

    @property
    def name(self) -> str:
        return ", ".join(map(str, self.sources)) if self.sources and not self.library else str(self.library)


def subject_of(paths: Sequence[Path]) -> Subject:
    for path in paths:
        if not path.is_file():
            raise FaultlensError(f"There is no {path}.", "Name the sources of the op, the library, or both.")
    sources = tuple(path.resolve() for path in paths if path.suffix in SOURCES)
    libraries = [path.resolve() for path in paths if path.suffix not in SOURCES]
    if len(libraries) > 1:
        raise FaultlensError("Only one library can be sanitized at a time.", f"Leave out {libraries[1]}.")
    for given in libraries:
        with given.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                raise FaultlensError(f"{given} is neither a source nor a library.", f"Sources end in {_known()}.")
    library = libraries[0] if libraries else None
    if library and not sources:
        sources = sources_of(library)
    return Subject(sources, library)


def _known() -> str:
    return ", ".join(SOURCES)


def sources_of(library: Path) -> tuple[Path, ...]:
    """Those that the debug information names; else the one beside the library that is called like it."""
    named = tuple(path for path in _compiled_from(library) if path.is_file())
    return tuple(dict.fromkeys(named)) or _beside(library)


def _compiled_from(library: Path) -> list[Path]:
    command = ["readelf", "--debug-dump=info", "--dwarf-depth=1", str(library)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    found, name = [], ""
    for line in said.splitlines():
        if match := _UNIT.search(line):
            if match[1] == "name":
                name = match[2].strip()
            elif name:
                found.append((Path(match[2].strip()) / name).resolve())
                name = ""
    return [path for path in found if path.suffix in SOURCES]


def _beside(library: Path) -> tuple[Path, ...]:
    stem = library.name.split(".")[0]
    for prefix in _PREFIXES:
        stem = stem.removeprefix(prefix)
    bare = stem
    for suffix in _SUFFIXES:
        bare = bare.removesuffix(suffix)
    names = [stem, bare, f"{bare}_op", f"{bare}_ops", f"{bare}_kernel", f"{bare}_kernels"]
    folders = [library.parent, library.parent.parent]
    candidates = (folder / f"{name}{suffix}" for folder in folders for name in names for suffix in SOURCES[:-1])
    return tuple(next(([path.resolve()] for path in candidates if path.is_file()), []))
