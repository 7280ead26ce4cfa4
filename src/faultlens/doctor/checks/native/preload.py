from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.diagnosis import Fix
from faultlens.doctor.check import Check, fix
from faultlens.doctor.loading import Loading, LoadingError, Refusal, describe, needs
from faultlens.doctor.patient import Patient
from faultlens.doctor.swaps import Swap, consequence, only_with_variables, swapped, without
from faultlens.environment.linkage import exported_of, exports_of
from faultlens.environment.loader import Library
from faultlens.finding import Examination, Finding

VARIABLE = "LD_PRELOAD"
_ASAN, _LIBSTDCXX = "__asan_init", "libstdc++.so.6"
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
    after it; without, TensorFlow is imported and the first exception that it throws ends the program. Entries that
    cannot be loaded are ignored by the loader, with a message.
    """

    name = "preload"
    looks_at = "libraries that LD_PRELOAD puts in front of all others, and whose symbols they shadow"
    position = 46
    causes = ("duplicate-native-library", "wrong-library-loaded")

    def examine(self, patient: Patient) -> Examination:
        value = patient.variables.get(VARIABLE, "").strip(": ")
        try:
            loading, undisturbed = patient.loading, patient.undisturbed_loading
        except LoadingError as reason:
            return self.skipped(str(reason))
        forced = loading.process.preloaded
        if not value and not forced:
            return self.fine("LD_PRELOAD is not set")
        mixtures: dict[Library, Overlap] = {}
        for overlap in overlaps(loading):
            if overlap.is_mixture:
                mixtures.setdefault(overlap.intruder, overlap)
        findings = [self._mixed(overlap, value, patient) for overlap in mixtures.values()]
        findings += [self._refused(each, value, patient) for each in _because_of(forced, loading, undisturbed)]
        misplaced = [library for library in forced if library not in mixtures]
        findings += [
            self._replaced(swap, value, patient) for swap in swapped(loading, undisturbed, misplaced) if swap.user
        ]
        findings += self._alone(loading, value)
        kinds = {library.path: _kind(library.path) for library in forced}
        details = [f"{path}: {kind or 'of no kind that is known to be preloaded'}" for path, kind in kinds.items()]
        details += [
            f"{name} cannot be loaded: the loader says so, and goes on" for name in loading.process.not_preloaded
        ]
        return self.judged(findings, _summary(kinds, loading.process.not_preloaded), details)

    def _mixed(self, overlap: Overlap, value: str, patient: Patient) -> Finding:
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
            [_take_out(entry.path, value, patient)],
            causes=("duplicate-native-library",),
        )

    def _refused(self, refusal: Refusal, value: str, patient: Patient) -> Finding:
        fault = refusal.fault
        told = self.error if refusal.module.is_required else self.warning
        entry = fault.taken or fault.by
        return told(
            f"with {VARIABLE}, {describe(fault)}",
            [(needs(fault), "ELF dynamic section"), (f"{VARIABLE} is {value}", "environment")],
            [_take_out(entry, value, patient)],
            causes=("wrong-library-loaded",),
        )

    def _replaced(self, swap: Swap, value: str, patient: Patient) -> Finding:
        """A preloaded library bears the name of another, and does not fit in its place."""
        fatal, what = consequence(swap, patient)
        told = self.error if fatal else self.warning
        return told(
            f"{swap.taken.name} is preloaded, which does not fit: {what}",
            [*swap.evidence, (f"{VARIABLE} is {value}", "environment")],
            [_take_out(swap.taken.path, value, patient)],
            causes=("wrong-library-loaded",),
        )

    def _alone(self, loading: Loading, value: str) -> Iterator[Finding]:
        """AddressSanitizer looks for the function that throws when the program starts, and keeps what it found."""
        for library in loading.process.preloaded:
            if exported_of(library.path, [_ASAN]) and all(each.name != _LIBSTDCXX for each in loading.process.at_start):
                beside = loading.process.find(_LIBSTDCXX)
                yield self.warning(
                    f"{library.name} is preloaded without libstdc++: the first C++ exception dies in it",
                    [
                        (f"{VARIABLE} is {value}", "environment"),
                        (f"{_LIBSTDCXX} is not loaded when the program starts", "search order of the loader"),
                    ],
                    [
                        fix(
                            "preload libstdc++ after it",
                            f"export {VARIABLE}={value}:{beside.path if beside else _LIBSTDCXX}",
                        )
                    ],
                    causes=(),
                )


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


def _take_out(path: str, value: str, patient: Patient) -> Fix:
    return fix(f"take {Path(path).name} out of {VARIABLE}", without(VARIABLE, value, path, patient.directory))


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
