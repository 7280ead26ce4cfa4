from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.doctor.check import Check, fix
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding
from faultlens.system.linkage import exported_of, exports_of, imports
from faultlens.system.loader import Library
from faultlens.target_env.loading import Loading, LoadingError, Refusal, describe, needs
from faultlens.target_env.swaps import Swap, consequence, only_with_variables, swapped, without
from faultlens.target_env.target import TargetEnvironment

VARIABLE = "LD_PRELOAD"
_ASAN, _LIBSTDCXX = "__asan_init", "libstdc++.so.6"
# Its settings, which it exports. It gives every object pages of its own, and was seen to let no TensorFlow be imported.
_ELECTRIC_FENCE = frozenset(("EF_ALIGNMENT", "EF_PROTECT_FREE"))
# What gives out memory that `free` takes back.
_GIVES = ("malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign")
# How a library that stands before another one of the same functions calls it.
_PASSES_ON = frozenset(
    ("dlsym", "dlvsym", "valloc", "pvalloc", *_GIVES, *(f"__libc_{name}" for name in (*_GIVES, "valloc", "pvalloc")))
)
# A library that is made to be preloaded says so by what it defines.
_KINDS = (
    ((_ASAN, "__tsan_init", "__msan_init", "__lsan_init", "__ubsan_handle_type_mismatch_v1"), "a sanitizer"),
    (("malloc", "free"), "an allocator"),
    (("sigaction",), "a wrapper of the system's functions"),
)
# Libraries of which another one carries a copy under the same names, and a mixture of the two is known to die.
_SHADOWED = ("libcrypto.so", "libssl.so")
# A wrapper defines a handful of functions; a copy of the library defines hundreds.
COPY = 50
SAMPLE = 10
SHOWN = 4


class Overlap(NamedTuple):
    """A preloaded library that defines what another one defines and uses."""

    intruder: Library
    victim: Library
    shared: tuple[str, ...]
    all: int  # symbols of the victim

    @property
    def is_mixture(self) -> bool:
        """A complete replacement is none."""
        return COPY <= len(self.shared) < self.all


class Preload(Check):
    """
    Looks at LD_PRELOAD, which puts libraries in front of all others: their symbols are taken wherever the same names
    are used. Allocators, sanitizers and tracers are made for it. A library with a copy of OpenSSL inside (TensorFlow
    carries BoringSSL) is not: Python's `hashlib` and `ssl` then call a mixture of both.

    Measured: libtensorflow_framework.so.2 of every TensorFlow from 2.12 to 2.21 (and libtensorflow_cc.so.2 of 2.21,
    which brings it along) ends in SIGSEGV at `import hashlib`, the program's own version too. With jemalloc, tcmalloc,
    libomp and libtorch_cpu.so TensorFlow is imported and computes. AddressSanitizer works when libstdc++ is preloaded
    after it; without, TensorFlow is imported and the first exception that it throws ends the program. Electric Fence
    ends in SIGSEGV when TensorFlow 2.12 to 2.21 is imported, and with EF_ALIGNMENT in an abort of its own. Entries that
    cannot be loaded are ignored by the loader, with a message.

    A library that gives out memory (`aligned_alloc`) without a `free` of its own leaves glibc's to take back what it
    never gave. One that only passes the calls on, as tracers do, asks for the next definition (`dlsym`), and is none.
    """

    name = "preload"
    looks_at = "libraries that LD_PRELOAD puts in front of all others, and whose symbols they shadow"
    position = 46
    causes = ("duplicate-native-library", "wrong-library-loaded", "allocator-mismatch")

    def examine(self, target: TargetEnvironment) -> Examination:
        value = target.variables.get(VARIABLE, "").strip(": ")
        try:
            loading, undisturbed = target.loading, target.undisturbed_loading
        except LoadingError as reason:
            return self.skipped(str(reason))
        forced = loading.process.preloaded
        if not value and not forced:
            return self.fine("LD_PRELOAD is not set")
        mixtures: dict[Library, Overlap] = {}
        for overlap in overlaps(loading):
            if overlap.is_mixture:
                mixtures.setdefault(overlap.intruder, overlap)
        findings = [self._mixed(overlap, value, target) for overlap in mixtures.values()]
        findings += [self._refused(each, value, target) for each in _because_of(forced, loading, undisturbed)]
        misplaced = [library for library in forced if library not in mixtures]
        findings += [
            self._replaced(swap, value, target) for swap in swapped(loading, undisturbed, misplaced) if swap.user
        ]
        findings += self._alone(loading, value)
        findings += [found for library in forced for found in self._allocator(library, value, target)]
        kinds = {library.path: _kind(library.path) for library in forced}
        details = [f"{path}: {kind or 'of no kind that is known to be preloaded'}" for path, kind in kinds.items()]
        details += [
            f"{name} cannot be loaded: the loader says so, and goes on" for name in loading.process.not_preloaded
        ]
        return self.judged(findings, _summary(kinds, loading.process.not_preloaded), details)

    def _mixed(self, overlap: Overlap, value: str, target: TargetEnvironment) -> Finding:
        intruder, victim = Path(overlap.intruder.path).name, overlap.victim.name
        entry = _entry(overlap.intruder)
        return self.error(
            f"{intruder} is preloaded and shadows {victim}: Python dies at import hashlib",
            [
                (f"{VARIABLE} is {value}", "environment"),
                (
                    f"{len(overlap.shared)} of the {overlap.all} symbols of {overlap.victim.path} are also in "
                    f"{overlap.intruder.path}: {', '.join(overlap.shared[:SHOWN])}, …",
                    "symbol tables",
                ),
            ],
            [_take_out(entry.path, value, target)],
            causes=("duplicate-native-library",),
        )

    def _refused(self, refusal: Refusal, value: str, target: TargetEnvironment) -> Finding:
        fault = refusal.fault
        told = self.error if refusal.module.is_required else self.warning
        entry = fault.taken or fault.by
        return told(
            f"with {VARIABLE}, {describe(fault)}",
            [(needs(fault), "ELF dynamic section"), (f"{VARIABLE} is {value}", "environment")],
            [_take_out(entry, value, target)],
            causes=("wrong-library-loaded",),
        )

    def _replaced(self, swap: Swap, value: str, target: TargetEnvironment) -> Finding:
        """A preloaded library bears the name of another, and does not fit in its place."""
        fatal, what = consequence(swap, target)
        told = self.error if fatal else self.warning
        return told(
            f"{swap.taken.name} is preloaded, which does not fit: {what}",
            [*swap.evidence, (f"{VARIABLE} is {value}", "environment")],
            [_take_out(swap.taken.path, value, target)],
            causes=("wrong-library-loaded",),
        )

    def _alone(self, loading: Loading, value: str) -> Iterator[Finding]:
        """AddressSanitizer looks for the function that throws when the program starts, and keeps what it found."""
        for library in loading.process.preloaded:
            if exported_of(library.path, [_ASAN]) and all(each.name != _LIBSTDCXX for each in loading.process.at_start):
                beside = loading.process.find(_LIBSTDCXX)
                added = f"{value}:{beside.path if beside else _LIBSTDCXX}"
                yield self.warning(
                    f"{library.name} is preloaded without libstdc++: the first C++ exception dies in it",
                    [
                        (f"{VARIABLE} is {value}", "environment"),
                        (f"{_LIBSTDCXX} is not loaded when the program starts", "search order of the loader"),
                    ],
                    [
                        fix(
                            "preload libstdc++ after it",
                            f"export {VARIABLE}={shlex.quote(added)}",
                        )
                    ],
                    causes=(),
                )

    def _allocator(self, library: Library, value: str, target: TargetEnvironment) -> Iterator[Finding]:
        evidence = [(f"{VARIABLE} is {value}", "environment")]
        fixes = [_take_out(library.path, value, target)]
        if exported_of(library.path, _ELECTRIC_FENCE) == _ELECTRIC_FENCE:
            title = f"{library.name} (Electric Fence) is preloaded: importing TensorFlow crashes"
            settings = f"{library.path} exports {' and '.join(sorted(_ELECTRIC_FENCE))}"
            yield self.error(title, [*evidence, (settings, "symbol tables")], fixes, causes=())
        elif names := gives_only(exported_of(library.path, (*_GIVES, "free")), imports(library.path)):
            title = f"{library.name} is preloaded and gives out memory ({', '.join(names)}) without a free of its own"
            told = f"{library.path} exports {', '.join(names)}, not free, and does not look for the next definition"
            yield self.warning(title, [*evidence, (told, "symbol tables")], fixes, causes=("allocator-mismatch",))


def gives_only(defined: Iterable[str], imported: Iterable[str]) -> tuple[str, ...]:
    """Functions by which a library gives out memory of its own that it does not take back."""
    names = frozenset(defined)
    if "free" in names or not _PASSES_ON.isdisjoint(imported):
        return ()
    return tuple(name for name in _GIVES if name in names)


def overlaps(loading: Loading) -> Iterator[Overlap]:
    """What is preloaded, or comes with it, against the libraries that it would be mixed with."""
    forced = [each for library in loading.process.preloaded for each in library.closure]
    for victim in loading.process.libraries:
        if not victim.name.startswith(_SHADOWED) or victim in forced:
            continue
        names = exports_of(victim.path)
        for intruder in dict.fromkeys(forced):
            # A sample tells a copy from a library that has nothing to do with it.
            if exported_of(intruder.path, names[::SAMPLE]):
                yield Overlap(intruder, victim, tuple(sorted(exported_of(intruder.path, names))), len(names))


def _because_of(forced: Iterable[Library], loading: Loading, undisturbed: Loading) -> list[Refusal]:
    paths = {library.path for library in forced}
    broken = only_with_variables(loading, undisturbed)
    return [each for each in broken if each.fault.taken in paths or each.fault.by in paths][:SHOWN]


def _take_out(path: str, value: str, target: TargetEnvironment) -> Fix:
    return fix(f"take {Path(path).name} out of {VARIABLE}", without(VARIABLE, value, path, target.directory))


def _entry(library: Library) -> Library:
    """What stands in the variable: the library, or the one that brought it."""
    while library.asked_by is not None and library.asked_by.asked_by is not None:
        library = library.asked_by
    return library


def _kind(path: str) -> str | None:
    for names, kind in _KINDS:
        if exported_of(path, names):
            return kind
    return None


def _summary(kinds: dict[str, str | None], ignored: list[str]) -> str:
    parts = [f"{Path(path).name}{f' ({kind})' if kind else ''}" for path, kind in kinds.items()]
    parts += [f"{name} (cannot be loaded, ignored)" for name in ignored]
    return f"{', '.join(parts)}: no conflict found"
