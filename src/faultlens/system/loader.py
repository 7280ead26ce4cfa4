"""Which files the dynamic loader would take, by its own rules: nothing is run and nothing is loaded.

The rules are glibc's: a name that is loaded already wins; else LD_PRELOAD, DT_RPATH (own, that of whoever asked, and
the program's; not where there is a DT_RUNPATH), LD_LIBRARY_PATH, DT_RUNPATH, /etc/ld.so.cache, the default folders.
In each folder the glibc-hwcaps of the CPU come first. The folders `tls` and `haswell`, which glibc 2.37 gave up, are
not looked into."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from faultlens.system import elf
from faultlens.system.binary import Binary, Dynamic
from faultlens.system.ldcache import LoaderCache, read_cache
from faultlens.system.loader_variables import preload_entries, search_entries

PT_INTERP = 3
PRELOAD_FILE = Path("/etc/ld.so.preload")
MULTIARCH = "x86_64-linux-gnu"
# What a CPU of each level has, in the words of /proc/cpuinfo; best first, each includes those after it.
LEVELS: Mapping[str, frozenset[str]] = {
    "x86-64-v4": frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split()),
    "x86-64-v3": frozenset("avx avx2 bmi1 bmi2 f16c fma abm movbe xsave".split()),
    "x86-64-v2": frozenset("cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3".split()),
}
# No memory, descriptor or process left for us, which says nothing about what we look at.
OUR_WANT = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)\b|\{(ORIGIN|LIB|PLATFORM)\})")

Read = Callable[[str], Dynamic]  # raises OSError or ElfError
Fit = Literal["fits", "other machine", "damaged", "absent"]


class Fault(NamedTuple):
    """Why the loader would refuse to load a library."""

    kind: Literal["missing", "version", "damaged", "foreign"]  # foreign: for another machine
    by: str  # the file that needs it
    name: str  # the library that is needed
    versions: tuple[str, ...] = ()  # those that the file taken does not have
    taken: str | None = None


@dataclass(eq=False)
class Library:
    """A library in the imagined process."""

    path: str  # as the loader opened it
    dynamic: Dynamic
    asked_by: Library | None
    via: str  # "LD_LIBRARY_PATH", "RUNPATH", …: the rule that led to this file
    needs: dict[str, Library | None] = field(default_factory=dict)  # None: nothing was found

    @property
    def name(self) -> str:
        return self.dynamic.soname or Path(self.path).name

    @property
    def closure(self) -> tuple[Library, ...]:
        """Itself and what it needs, in the order in which symbols are looked up."""
        found = [self]
        for library in found:
            found.extend(each for each in library.needs.values() if each is not None and each not in found)
        return tuple(found)


class Opened(NamedTuple):
    library: Library | None  # None: the file itself cannot be loaded
    faults: tuple[Fault, ...]  # why it would be refused


@dataclass(frozen=True)
class System:
    """What all programs on this machine share."""

    cache: LoaderCache
    folders: tuple[str, ...]  # looked into last
    levels: tuple[str, ...]  # of the CPU, best first
    lib: str  # what $LIB stands for
    preloaded: tuple[str, ...] = ()  # by /etc/ld.so.preload, into every program


def this_system(cpu_flags: Sequence[str]) -> System:
    multiarch = os.path.isdir(f"/lib/{MULTIARCH}")
    lib64 = os.path.isdir("/usr/lib64") and not os.path.islink("/usr/lib64")
    try:
        listed = re.sub("#.*", "", PRELOAD_FILE.read_text(errors="replace"))
    except OSError:
        listed = ""
    return System(
        cache=read_cache(),
        folders=(f"/lib/{MULTIARCH}", f"/usr/lib/{MULTIARCH}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
        levels=levels_of(cpu_flags),
        lib=f"lib/{MULTIARCH}" if multiarch else "lib64" if lib64 else "lib",
        preloaded=tuple(filter(None, re.split(r"[\s:]", listed))),
    )


def levels_of(cpu_flags: Sequence[str]) -> tuple[str, ...]:
    has, needed = frozenset(cpu_flags), frozenset[str]()
    found: list[str] = []
    for level in reversed(tuple(LEVELS)):
        needed |= LEVELS[level]
        if needed <= has:
            found.insert(0, level)
    return tuple(found)


def read_dynamic(path: str) -> Dynamic:
    with Binary(path) as binary:
        if not binary.is_whole:
            raise elf.ElfError("it was cut short")
        return binary.dynamic


def interpreter_of(executable: str) -> str | None:
    """The loader that a program asks for: "/lib64/ld-linux-x86-64.so.2"; none where it is linked statically."""
    with Binary(executable) as binary:
        for segment in binary.segments:
            if segment.type == PT_INTERP:
                return binary.read(segment.offset, segment.filesz).rstrip(b"\0").decode("utf-8", "replace")
    return None


class Process:
    """An imagined process: the program as it would be started, then `open` for each library in the order of loading.

    `libraries` are what it would have loaded, in order. `faults` are those of the start itself: where there are any,
    the program would not start."""

    def __init__(
        self,
        executable: str,
        variables: Mapping[str, str],
        directory: Path,
        system: System,
        read: Read = read_dynamic,
    ) -> None:
        self.libraries: list[Library] = []
        self.not_preloaded: list[str] = []  # the loader says so, and goes on
        self._names: dict[str, Library] = {}
        self._identities: dict[tuple[int, int], Library] = {}
        self._folders: dict[str, bool] = {}  # which of them exist: most in a RUNPATH do not
        self._directory, self._system, self._read = directory, system, read
        # The loader knows the program by the file behind the links.
        program = os.path.realpath(executable)
        self.program = self._add(program, "", None, "the program itself", read(program))
        self._search_path = tuple(
            self._expand(each, self.program) or "." for each in search_entries(variables.get("LD_LIBRARY_PATH", ""))
        )
        self.preloaded: list[Library] = []
        loader = interpreter_of(program)
        if loader and (path := self._absolute(loader)) and _fit(path) == "fits":
            self._add(path, loader, self.program, "the loader itself", read(path))
        for name in (*preload_entries(variables.get("LD_PRELOAD", "")), *system.preloaded):
            library = self._map(name, self.program)
            if isinstance(library, Library):
                self.preloaded.append(library)
            else:
                self.not_preloaded.append(name)
        self.faults = self._complete([self.program, *self.preloaded])
        self.at_start = tuple(self.libraries)  # their symbols are found by everybody, and first

    def open(self, path: str, caller: Library | None = None) -> Opened:
        """As dlopen does; what would be refused leaves no trace in the process."""
        before = len(self.libraries)
        library = self._map(path, caller or self._python)
        if isinstance(library, Fault):
            return Opened(None, (library,))
        faults = self._complete([library]) if library in self.libraries[before:] else ()
        if faults:
            self._forget(before)
        return Opened(library, faults)

    def find(self, path_or_name: str) -> Library | None:
        """A library that is loaded."""
        return self._names.get(path_or_name)

    @property
    def _python(self) -> Library:
        """Who calls dlopen: libpython, or a program that has it built in."""
        return next((library for library in self.libraries if library.name.startswith("libpython")), self.program)

    # ------------------------------------------------------------------------------------------------- loading

    def _complete(self, roots: list[Library]) -> tuple[Fault, ...]:
        """Loads what is needed, breadth first, then compares versions, as the loader does."""
        queue, faults = list(roots), []
        for library in queue:
            for name in library.dynamic.needed:
                count = len(self.libraries)
                found = self._map(name, library)
                if isinstance(found, Fault):
                    library.needs[name] = None
                    faults.append(found)
                    continue
                library.needs[name] = found
                if len(self.libraries) > count:
                    queue.append(found)
        for library in queue:
            faults.extend(self._lacking(library))
        return tuple(faults)

    def _lacking(self, library: Library) -> Iterator[Fault]:
        for name, versions in library.dynamic.needs_versions.items():
            taken = self._names.get(name)
            # A library without any versions is taken for what it says it is.
            if taken is not None and taken.dynamic.offers_versions:
                lacking = tuple(each for each in versions if each not in taken.dynamic.offers_versions)
                if lacking:
                    yield Fault("version", library.path, name, lacking, taken.path)

    def _map(self, name: str, asking: Library) -> Library | Fault:
        loaded = self._names.get(name)
        if loaded is not None:
            return loaded
        for path, via in self._candidates(name, asking):
            fit = _fit(path)
            if fit == "damaged":
                return Fault("damaged", asking.path, name, taken=path)
            if fit == "other machine" and path == name:
                return Fault("foreign", asking.path, name, taken=path)
            if fit != "fits":
                continue
            try:
                return self._add(path, name, asking, via, self._read(path))
            except elf.ElfError:
                return Fault("damaged", asking.path, name, taken=path)
            except OSError as error:
                if error.errno in OUR_WANT:
                    raise
                return Fault("damaged", asking.path, name, taken=path)
        return Fault("missing", asking.path, name)

    def _add(self, path: str, name: str, asking: Library | None, via: str, dynamic: Dynamic) -> Library:
        status = os.stat(path)
        library = self._identities.get((status.st_dev, status.st_ino))
        if library is None:
            library = Library(path, dynamic, asking, via)
            self._identities[(status.st_dev, status.st_ino)] = library
            self.libraries.append(library)
        for each in (path, name, dynamic.soname):
            if each:
                self._names.setdefault(each, library)
        return library

    def _forget(self, count: int) -> None:
        gone = self.libraries[count:]
        del self.libraries[count:]
        self._names = {name: library for name, library in self._names.items() if library not in gone}
        self._identities = {key: library for key, library in self._identities.items() if library not in gone}

    # ------------------------------------------------------------------------------------------------ searching

    def _candidates(self, name: str, asking: Library) -> Iterator[tuple[str, str]]:
        if "/" in name:
            yield self._absolute(self._expand(name, asking)), "its path"
            return
        if not asking.dynamic.runpath:
            for library in self._askers(asking):
                for folder in () if library.dynamic.runpath else library.dynamic.rpath:
                    yield from self._in(self._expand(folder, library), name, "RPATH")
        for folder in self._search_path:
            yield from self._in(folder, name, "LD_LIBRARY_PATH")
        for folder in asking.dynamic.runpath:
            yield from self._in(self._expand(folder, asking), name, "RUNPATH")
        if cached := self._system.cache.lookup(name, self._system.levels):
            yield cached, "the system's cache"
        for folder in self._system.folders:
            yield from self._in(folder, name, "a default folder")

    def _askers(self, library: Library | None) -> Iterator[Library]:
        """It, who asked for it, and so on up; the program in any case."""
        last = None
        while library is not None:
            yield library
            last, library = library, library.asked_by
        if last is not self.program:
            yield self.program

    def _in(self, folder: str, name: str, via: str) -> Iterator[tuple[str, str]]:
        folder = self._absolute(folder)
        if not self._is_folder(folder):
            return
        for level in self._system.levels if self._is_folder(f"{folder}/glibc-hwcaps") else ():
            yield f"{folder}/glibc-hwcaps/{level}/{name}", via
        yield f"{folder.rstrip('/')}/{name}", via

    def _is_folder(self, path: str) -> bool:
        if path not in self._folders:
            self._folders[path] = os.path.isdir(path)
        return self._folders[path]

    def _expand(self, text: str, library: Library) -> str:
        meaning = {"ORIGIN": os.path.dirname(library.path), "LIB": self._system.lib, "PLATFORM": "x86_64"}
        return _TOKEN.sub(lambda match: meaning[match[1] or match[2]], text) if "$" in text else text

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._directory}/{path}"


def _fit(path: str) -> Fit:
    """What the loader makes of a file: it passes over those of other machines, and gives up at damaged ones."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            head = file.read(20)
    except IsADirectoryError:
        return "damaged"
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in OUR_WANT:
            raise
        return "absent"
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return "damaged"
    fits = head[4] == elf.ELFCLASS64 and int.from_bytes(head[18:20], "little") == elf.EM_X86_64
    return "fits" if fits else "other machine"
