"""What the loader would take for `import tensorflow`, file by file, in the order in which Python asks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from faultlens.records.crash import MachineState
from faultlens.system.binary import Dynamic
from faultlens.system.elf import ElfError
from faultlens.system.loader import Fault, Process, Read, interpreter_of, read_dynamic, this_system
from faultlens.target_env.interpreter import Interpreter

MISLEADING = ("LD_LIBRARY_PATH", "LD_PRELOAD")
PYTHON = "Python"
# Without these there is no `import tensorflow`; without the others it goes on, and what needs them fails later.
REQUIRED = ("tensorflow", "numpy", "ml_dtypes")
COMPANIONS = ("google/_upb", "wrapt", "h5py", "optree")
# These have the same in Python, and take that where the compiled modules cannot be loaded.
OPTIONAL = ("google._upb", "wrapt")
# Modules of the standard library that bring libraries of the system, in the order in which TensorFlow asks for them.
STANDARD = ("_ctypes", "_hashlib", "_ssl", "zlib", "_bz2", "_lzma", "_uuid", "_decimal", "pyexpat")
# TensorFlow's own come before NumPy's, these two among the first: measured on 2.12 to 2.21.
_FIRST = ("_pywrap_cpu_feature_guard.so", "_pywrap_tensorflow_internal.so")


class Environment(Protocol):
    """What is asked of the environment that TensorFlow would be imported in."""

    @property
    def interpreter(self) -> Interpreter: ...
    @property
    def machine(self) -> MachineState: ...
    @property
    def directory(self) -> Path: ...
    @property
    def native_files(self) -> tuple[Path, ...]: ...
    @property
    def dynamics(self) -> Mapping[Path, Dynamic]: ...
    def packages_named(self, name: str) -> Iterator[Path]: ...


@dataclass(frozen=True)
class Module:
    """An extension module that would be imported, or Python itself."""

    package: str  # "numpy"; "" for the standard library
    path: Path

    @property
    def is_required(self) -> bool:
        return self.package in (PYTHON, *REQUIRED)


@dataclass(frozen=True)
class Refusal:
    """A module that the loader would refuse to load."""

    module: Module
    fault: Fault


@dataclass(frozen=True)
class Loading:
    process: Process
    modules: tuple[Module, ...]
    refusals: tuple[Refusal, ...]  # one for each thing that is not right, with the first module that meets it


class LoadingError(Exception):
    """Why the process cannot be imagined: one line."""


def imagine(target: Environment, variables: Mapping[str, str]) -> Loading:
    """The process after `import tensorflow` with these variables. Raises LoadingError."""
    executable = target.interpreter.executable
    try:
        loader = interpreter_of(executable)
        if loader is None or "ld-linux" not in loader:
            raise LoadingError(f"{executable} is not started by glibc's loader")
        system = this_system(target.machine.cpu_flags)
        process = Process(executable, variables, target.directory, system, _reader(target))
    except OSError as error:
        raise LoadingError(f"{executable}: {error.strerror}") from error
    except ElfError as error:
        raise LoadingError(f"{executable} cannot be read: {error}") from error
    modules = tuple(_modules(target))
    python = Module(PYTHON, Path(process.program.path))
    found = {fault: Refusal(python, fault) for fault in process.faults}
    for module in modules if not process.faults else ():
        for fault in process.open(str(module.path)).faults:
            found.setdefault(fault, Refusal(module, fault))
    return Loading(process, modules, tuple(found.values()))


def _reader(target: Environment) -> Read:
    known = {str(path): dynamic for path, dynamic in target.dynamics.items()}

    def read(path: str) -> Dynamic:
        if path not in known:
            known[path] = read_dynamic(path)
        return known[path]

    return read


def _modules(target: Environment) -> Iterator[Module]:
    abi = target.interpreter.abi
    suffixes = (f".{abi}-x86_64-linux-gnu.so", ".abi3.so")
    for name in STANDARD:
        for entry in target.interpreter.path:
            path = Path(entry) / f"{name}{suffixes[0]}"
            if Path(entry).name == "lib-dynload" and os.path.exists(path):
                yield Module("", path)
    for package in (*REQUIRED, *COMPANIONS):
        folder = next(target.packages_named(package), None)
        if folder is None:
            continue
        inside = [path for path in target.native_files if str(path).startswith(f"{folder}/")]
        inside = inside or list(_libraries(folder))
        if package == "tensorflow":  # its modules bear no tag
            inside = [path for path in inside if path.suffix == ".so" and not path.name.startswith("lib")]
        else:
            inside = [path for path in inside if path.name.endswith(suffixes)]
        yield from (Module(package.replace("/", "."), path) for path in sorted(inside, key=_when))


def _libraries(folder: Path) -> Iterator[Path]:
    """For packages outside of site-packages."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("include", "__pycache__")]
        yield from (Path(place) / name for name in names if name.endswith(".so"))


def _when(path: Path) -> tuple[int, Path]:
    return _FIRST.index(path.name) if path.name in _FIRST else len(_FIRST), path


# ------------------------------------------------------------------------------------------------------------ words


def describe(fault: Fault) -> str:
    by = Path(fault.by).name
    if fault.kind == "missing":
        return f"{fault.name} is missing, which {by} needs"
    if fault.kind == "damaged":
        return f"{Path(fault.name).name} is damaged or cut short"
    if fault.kind == "foreign":
        return f"{Path(fault.name).name} is for another machine"
    return f"{fault.name} is without {newest(fault.versions)}, which {by} needs"


def needs(fault: Fault) -> str:
    return f"{os.path.normpath(fault.by)} needs {fault.name}" + (
        f" with {', '.join(fault.versions)}" if fault.versions else ""
    )


def newest(versions: Iterable[str]) -> str:
    return max(versions, key=numbers)


def numbers(version: str) -> tuple[int, ...]:
    text = version.rpartition("_")[2]
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d+(\.\d+)*", text) else ()
