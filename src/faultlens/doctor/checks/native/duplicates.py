from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.doctor.check import Check, fix
from faultlens.records.finding import Examination, Finding
from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError
from faultlens.system.linkage import shared_symbols
from faultlens.system.loader import Library, Process
from faultlens.target_env.loading import LoadingError, imagine
from faultlens.target_env.target import TargetEnvironment

# Intel's and LLVM's runtime under the names that they have in wheels: libiomp5.so, libomp-a8b2c3.so.5.
_LLVM_OPENMP = re.compile(r"lib(?:omp|iomp5)(?![a-z])[^/]*\.so")
_ANY_OPENMP = re.compile(r"lib(?:g|i)?omp(?![a-z])[^/]*\.so")
# How such a runtime notices that another one is in the process.
_REGISTERS = b"__KMP_REGISTERED_LIB_"
# Libraries of which wheels bring copies, whatever hash stands in the names.
_BROUGHT = re.compile(r"(lib(?:\w*openblas|mkl_rt|blis|stdc\+\+|protobuf|absl_base|hdf5|crypto|ssl))[-.][^/]*$")
MANY = 50  # symbols in common: a copy of a library
_ALLOWED = "KMP_DUPLICATE_LIB_OK"
_OTHER_PYTHON = re.compile(r"\.cpython-\d+")


class User(NamedTuple):
    """What brings an OpenMP runtime into a program that imports or loads it."""

    name: str  # the package, or the library that was named
    path: Path
    runtime: Library
    given: bool  # by the user, as a library to look at


class Duplicates(Check):
    """
    Looks for packages that would bring two OpenMP runtimes of the LLVM family (libomp, libiomp5) into one process.
    The second one to start finds the first and aborts: "OMP: Error #15". With KMP_DUPLICATE_LIB_OK the program may
    hang at its exit instead. Runtimes of the same name are one: the loader takes the first for both. libgomp does not
    look for others and is not counted; torch, which brings one, works beside TensorFlow.

    The packages are loaded in an imagined process after TensorFlow, by the loader's rules; which of them a program
    uses together is not known beforehand, so the finding is a warning. Custom libraries that were named with --op
    are loaded too.

    Copies of BLAS, libstdc++ and the like in several packages have names of their own, and Python keeps the symbols
    of each module apart: they are listed with -v, with --deep also those that share symbols (TensorFlow's BoringSSL
    and OpenSSL).
    """

    name = "duplicates"
    looks_at = "packages that bring two OpenMP runtimes into one process"
    position = 48
    causes = ("duplicate-openmp",)

    def examine(self, target: TargetEnvironment) -> Examination:
        installed = [path for path in target.native_files if _ANY_OPENMP.match(path.name)]
        try:
            users = _users(target)
        except LoadingError as reason:
            return self.skipped(str(reason))
        found = self._finding(users, target)
        count = f"{len(installed)} OpenMP runtimes are installed" if len(installed) > 1 else "no second OpenMP runtime"
        return self.judged(
            [found] if found else [],
            f"{count}{', and get along' if len(installed) > 1 else ''}",
            [
                *map(str, installed),
                *(f"{user.name} loads {user.runtime.path}" for user in users),
                *_copies(target),
                *(_shared(target) if target.options.deep else ()),
            ],
        )

    def _finding(self, users: list[User], target: TargetEnvironment) -> Finding | None:
        first = users[0] if users else None
        second = next(
            (user for user in users if first and user.runtime is not first.runtime and user.name != first.name), None
        )
        if first is None or second is None:
            return None
        allowed = target.variables.get(_ALLOWED)
        remove = second if not second.given else first
        return self.warning(
            f"{first.name} and {second.name} bring two OpenMP runtimes: using both aborts with OMP: Error #15",
            [
                *((f"{user.path} loads {user.runtime.path}", "search order of the loader") for user in (first, second)),
                ("each aborts when it finds the other (__KMP_REGISTERED_LIB)", "the code of the runtimes"),
                *([(f"{_ALLOWED}={allowed}: it may hang at exit instead", "environment")] if allowed else []),
            ],
            [
                fix(
                    "take both from conda-forge, where they share one runtime",
                    f"conda install -c conda-forge {first.name} {second.name}",
                    safe=False,
                )
                if not (first.given or second.given)
                else fix(
                    f"build {second.name} against the runtime that is there",
                    f"g++ -fopenmp … {first.runtime.path}",
                    safe=False,
                ),
                *(
                    [
                        fix(
                            f"or do without {remove.name}",
                            f"{target.interpreter.pip} uninstall {remove.name}",
                            safe=False,
                        )
                    ]
                    if not remove.given
                    else []
                ),
            ],
        )


def _copies(target: TargetEnvironment) -> Iterator[str]:
    """Libraries that several packages bring, each under a name of its own: worth knowing, and no harm."""
    found: dict[str, list[Path]] = {}
    for path in target.native_files:
        if match := _BROUGHT.match(path.name):
            found.setdefault(match[1], []).append(path)
    for name, paths in found.items():
        if len(paths) > 1:
            yield f"{name} {len(paths)} times: {', '.join(map(str, paths))}"


def _shared(target: TargetEnvironment) -> Iterator[str]:
    """Libraries of different origin that define the same names."""
    paths = [library.path for library in target.loading.process.libraries]
    for (one, other), count in shared_symbols(map(os.path.normpath, paths)).items():
        if count >= MANY and _package(Path(one)) != _package(Path(other)):
            yield f"{one} and {other} both define {count} symbols"


def _users(target: TargetEnvironment) -> list[User]:
    """Those that load a runtime of the LLVM family, in the order of loading."""
    candidates = [
        path for path, dynamic in sorted(target.dynamics.items()) if any(map(_LLVM_OPENMP.match, dynamic.needed))
    ]
    candidates = [path for path in candidates if _fits_python(path, target.interpreter.abi)]
    if not candidates and not target.options.ops:
        return []
    process = imagine(target, target.variables).process
    found = [_loaded(process, path, _package(path), given=False) for path in candidates]
    found += [_loaded(process, path.absolute(), path.name, given=True) for path in target.options.ops]
    return [user for user in found if user is not None]


def _loaded(process: Process, path: Path, name: str, *, given: bool) -> User | None:
    library, faults = process.open(str(path))
    if library is None or faults:
        return None
    for each in library.closure:
        if _LLVM_OPENMP.match(Path(each.path).name) and _registers(each.path):
            return User(name, path, each, given)
    return None


def _registers(path: str) -> bool:
    try:
        with Binary(path) as binary:
            return binary.find(_REGISTERS) >= 0
    except (OSError, ElfError):
        return False


def _fits_python(path: Path, abi: str | None) -> bool:
    tag = _OTHER_PYTHON.search(path.name)
    return tag is None or abi is None or tag[0] == f".{abi}"


def _package(path: Path) -> str:
    """The top-level folder in site-packages, or a module's name."""
    parts = path.parts
    inside = next((index for index in range(len(parts) - 1, 0, -1) if parts[index].endswith("-packages")), 0)
    return parts[inside + 1].partition(".")[0]
