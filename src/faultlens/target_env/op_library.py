"""What a custom op library needs, and whether TensorFlow and the loader would give it: nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from faultlens.system.binary import STB_WEAK, Binary
from faultlens.system.linkage import lacking
from faultlens.system.loader import Fault, Process, this_system
from faultlens.target_env.target import TargetEnvironment, TensorFlow

FRAMEWORK, EVERYTHING = "libtensorflow_framework.so.2", "libtensorflow_cc.so.2"
# The first extension module of `import tensorflow`: it brings both libraries in.
ENTRANCE = "python/_pywrap_tensorflow_internal.so"
# Where this file is, `import tensorflow` shares its symbols with every library loaded later (2.19 and newer).
SHARES_SYMBOLS = "python/pywrap_dlopen_global_flags.py"
# One function of TensorFlow in both spellings of std::string.
NEW_STRING = "_ZN10tensorflow12OpDefBuilder5InputENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_STRING = "_ZN10tensorflow12OpDefBuilder5InputESs"
# Mangled names of TensorFlow's C++ interface and of what it is made of.
OF_TENSORFLOW = re.compile(r"^_ZT?[A-Z]*?(?:10tensorflow|3tsl|3xla|4absl|6google8protobuf|15stream_executor)|^TFE?_")
_ABSL = re.compile(r"4absl12(lts_\d{8})")
_ABSL_BYTES = b"4absl12lts_"
_LONGEST_FLAGS = 2000


class OpLibrary(NamedTuple):
    path: Path
    needed: tuple[str, ...]
    wants: tuple[str, ...]  # symbols, mangled: all must be found when it is loaded
    absl: tuple[str, ...]  # releases of Abseil in those names: "lts_20230802"
    registers_ops: bool


class Build(NamedTuple):
    """What the compiler left in the file."""

    compiler: str | None = None  # "GCC: (Debian 12.2.0-14) 12.2.0"
    flags: str | None = None  # in debug information: "GNU C++17 12.2.0 -march=x86-64 -g -O2 -std=c++17 -fPIC"


class Interface(NamedTuple):
    """What the installed TensorFlow was built with."""

    version: str
    folder: Path
    absl: str | None
    cxx11: int | None  # _GLIBCXX_USE_CXX11_ABI


@dataclass(frozen=True)
class Loading:
    """What `tf.load_op_library` would meet. It resolves all symbols at once (RTLD_NOW)."""

    library: OpLibrary
    faults: tuple[Fault, ...] = ()  # libraries that it needs
    missing: tuple[str, ...] = ()  # symbols, mangled
    elsewhere: tuple[str, ...] = ()  # those of them that libtensorflow_cc has, with which it is not linked


def read_op(path: Path) -> OpLibrary:
    """Raises OSError or ElfError."""
    with Binary(path) as binary:
        wants = tuple(symbol.name for symbol in binary.imports() if symbol.binding != STB_WEAK)
        return OpLibrary(
            path=path,
            needed=binary.dynamic.needed,
            wants=wants,
            absl=tuple(sorted({match for name in wants for match in _ABSL.findall(name)})),
            registers_ops=any("12OpDefBuilder" in name or name == "TF_RegisterOpDefinition" for name in wants),
        )


def build_of(path: Path) -> Build:
    """Raises OSError or ElfError."""
    with Binary(path) as binary:
        return Build(_text(binary, b"GCC: (") or _text(binary, b"clang version "), _text(binary, b"GNU C++"))


def _text(binary: Binary, begin: bytes) -> str | None:
    """A text of the compiler's in the sections for notes and debuggers."""
    place = binary.find(begin)
    return binary.read(place, _LONGEST_FLAGS).split(b"\0")[0].decode("utf-8", "replace") if place >= 0 else None


def interface_of(tensorflow: TensorFlow) -> Interface:
    """Raises OSError or ElfError."""
    with Binary(tensorflow.folder / FRAMEWORK) as binary:
        place = binary.find(_ABSL_BYTES)
        absl = binary.read(place + len(b"4absl12"), len("lts_20250814")).decode("ascii", "replace")
        cxx11 = 1 if binary.exports(NEW_STRING) else 0 if binary.exports(OLD_STRING) else None
    return Interface(tensorflow.version, tensorflow.folder, absl if place >= 0 else None, cxx11)


def build_words(sources: Sequence[str], library: str, interface: Interface) -> list[str]:
    """Arguments of the compiler, as `tf.sysconfig.get_compile_flags()` and `get_link_flags()` give them: the same for
    2.12 to 2.21, but for the ABI."""
    words = ["-shared", "-fPIC", "-O2", *sources, "-o", library, *include_words(interface), "--std=c++17"]
    return words + [f"-L{interface.folder}", f"-l:{FRAMEWORK}"]


def include_words(interface: Interface) -> list[str]:
    """What every compiler has to know, nvcc too."""
    abi = 1 if interface.cxx11 is None else interface.cxx11
    return [f"-I{interface.folder / 'include'}", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-DEIGEN_MAX_ALIGN_BYTES=64"]


class Program:
    """A Python program that has imported TensorFlow, imagined."""

    def __init__(self, target: TargetEnvironment, tensorflow: TensorFlow) -> None:
        """Raises OSError or ElfError where the interpreter is no program of this machine."""
        self._tensorflow = tensorflow
        self._process = Process(
            target.interpreter.executable, target.variables, target.directory, this_system(target.machine.cpu_flags)
        )
        self._entrance = self._process.open(str(tensorflow.folder / ENTRANCE))
        self.faults = self._process.faults or self._entrance.faults

    @cached_property
    def _shared(self) -> tuple[str, ...]:
        """Files whose symbols every library sees."""
        libraries = [*self._process.program.closure]
        libraries += [each for preloaded in self._process.preloaded for each in preloaded.closure]
        if self._entrance.library and (self._tensorflow.folder / SHARES_SYMBOLS).exists():
            libraries += self._entrance.library.closure
        return tuple(library.path for library in libraries)

    def load(self, libraries: Iterable[OpLibrary]) -> list[Loading]:
        known: dict[tuple[frozenset[str], str], bool] = {}  # libraries of one package want much the same
        return [self._load(library, known) for library in libraries]

    def _load(self, library: OpLibrary, known: dict[tuple[frozenset[str], str], bool]) -> Loading:
        path = str(library.path.absolute())
        opened, faults = self._process.open(path)
        own = [each.path for each in opened.closure] if opened else []
        files = tuple(dict.fromkeys((*self._shared, *own)))
        scope = frozenset(files) - {path}
        wanted = [name for name in library.wants if (scope, name) not in known]
        undefined = set(lacking(wanted, sorted(scope, key=_likely)))
        known.update({(scope, name): name not in undefined for name in wanted})
        missing = tuple(name for name in library.wants if not known[scope, name])
        if faults:  # what the libraries that are missing would have offered is not known
            missing = tuple(name for name in missing if OF_TENSORFLOW.search(name))
        still = set(lacking(missing, [str(self._tensorflow.folder / EVERYTHING)])) if missing else set()
        return Loading(library, faults, missing, tuple(name for name in missing if name not in still))


def _likely(path: str) -> int:
    """Most names are TensorFlow's, then C++'s: looked for there first."""
    return next((rank for rank, name in enumerate((FRAMEWORK, "libstdc++", "libc.so")) if name in path), 9)
