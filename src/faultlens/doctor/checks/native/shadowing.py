from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.loading import LoadingError, Refusal, describe, needs
from faultlens.target_env.swaps import Swap, consequence, only_with_variables, swapped, without
from faultlens.target_env.target import TargetEnvironment

VARIABLE = "LD_LIBRARY_PATH"
SHOWN = 4


class Shadowing(Check):
    """
    Looks at what LD_LIBRARY_PATH changes: it stands before the search path that a wheel has built in and before the
    system's libraries. The files that the loader would take are compared with those that it would take without the
    variable. Another file is a finding only where it makes a difference: symbol versions or symbols that are used are
    not in it, or it is another TensorFlow's. The same build from elsewhere and newer, compatible libraries are none.

    Measured: an older libstdc++ first in the path is an ImportError of TensorFlow; /usr/lib in the path of a Python
    that was built elsewhere brings the system's libpython into it, and `import ssl` fails.
    """

    name = "shadowing"
    looks_at = "which libraries LD_LIBRARY_PATH puts in the place of those that belong there"
    position = 44
    causes = ("wrong-library-loaded",)

    def examine(self, target: TargetEnvironment) -> Examination:
        value = target.variables.get(VARIABLE, "")
        if not value:
            return self.fine(f"{VARIABLE} is not set")
        try:
            loading, undisturbed = target.loading, target.undisturbed_loading
        except LoadingError as reason:
            return self.skipped(str(reason))
        forced = {library.path for library in loading.process.preloaded}
        refusals = [each for each in only_with_variables(loading, undisturbed) if each.fault.taken not in forced]
        others = [library for library in loading.process.libraries if library.path not in forced]
        swaps = list(swapped(loading, undisturbed, others))
        findings = [self._refused(refusal, value, target) for refusal in _one_each(refusals)]
        findings += [found for swap in _gravest(swaps) if (found := self._swapped(swap, value, target))]
        taken = [library.name for library in loading.process.libraries if library.via == VARIABLE]
        names = ", ".join(taken[:SHOWN]) + (", …" if len(taken) > SHOWN else "")
        summary = (
            f"{VARIABLE} brings {names}: no conflict found"
            if taken
            else f"{VARIABLE} is set, and no library comes from it"
        )
        return self.judged(findings, summary, (fact for swap in swaps for fact, _ in swap.evidence))

    def _refused(self, refusal: Refusal, value: str, target: TargetEnvironment) -> Finding:
        fault = refusal.fault
        told = self.error if refusal.module.is_required else self.warning
        return told(
            f"with {VARIABLE}, {describe(fault)}",
            [
                (needs(fault), "ELF dynamic section"),
                (f"{VARIABLE} is {value}", "environment"),
                *([(f"the loader would take {fault.taken}", "search order of the loader")] if fault.taken else []),
                (f"without {VARIABLE} it is loaded", "search order of the loader"),
            ],
            [fix(f"take that folder out of {VARIABLE}", without(VARIABLE, value, fault.taken, target.directory))],
        )

    def _swapped(self, swap: Swap, value: str, target: TargetEnvironment) -> Finding | None:
        tensorflow = next(target.packages_named("tensorflow"), None)
        of_tensorflow = tensorflow is not None and swap.instead.path.startswith(f"{tensorflow}/")
        if not swap.user and not of_tensorflow:
            return None
        whose = "another TensorFlow's" if of_tensorflow else "another"
        fatal, what = consequence(swap, target)
        told = self.error if fatal else self.warning
        return told(
            f"{VARIABLE} brings {whose} {swap.taken.name}{f': {what}' if what else ''}",
            [*swap.evidence, (f"{VARIABLE} is {value}", "environment")],
            [fix(f"take that folder out of {VARIABLE}", without(VARIABLE, value, swap.taken.path, target.directory))],
        )


def _gravest(swaps: Iterable[Swap]) -> list[Swap]:
    """One for each folder that libraries are taken from: the one that breaks something."""
    found: dict[Path, Swap] = {}
    for swap in sorted(swaps, key=lambda swap: not swap.symbols):
        found.setdefault(Path(swap.taken.path).parent, swap)
    return list(found.values())


def _one_each(refusals: Iterable[Refusal]) -> list[Refusal]:
    """One for each library that does not do; required modules come first."""
    found: dict[tuple[str, str | None], Refusal] = {}
    for refusal in sorted(refusals, key=lambda refusal: not refusal.module.is_required):
        found.setdefault((refusal.fault.name, refusal.fault.taken), refusal)
    return list(found.values())
