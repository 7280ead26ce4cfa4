"""What all causes in custom native code share: the place, the op, and the way to prove it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from faultlens.diagnosis.causes.base import POSSIBLE, Cause, Finding, consider, evidence, join
from faultlens.diagnosis.evidence import fenced, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.custom_ops import loaded_ops
from faultlens.diagnosis.evidence.explained import explained
from faultlens.diagnosis.evidence.installed import fixes_for_caller
from faultlens.diagnosis.evidence.ops import loads_tensorflow
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.diagnosis.evidence.suspects import Suspect
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import FencedBlock, Frame
from faultlens.records.diagnosis import Evidence, Fix, Location

# Code of installed packages is used by many: a bug there is rarer than one in code of the user's own.
PACKAGE_DISCOUNT = 0.15
# Threads that race end in all of these ways: with several in the same function none of them is certain.
RACED = 0.65
# The program itself handles memory in a way that explains the damage as well.
ONE_OF_SEVERAL = 0.45


class NativeCause(Cause):
    """A bug in code that is neither TensorFlow's nor Python's nor the system's."""

    also_of_races: ClassVar[bool] = False  # what this cause looks like is also how races end
    of_memory: ClassVar[bool] = False  # AddressSanitizer stops at it …
    done_before: ClassVar[bool] = False  # … sooner than the program dies, or knows more of it

    def read(self, case: Case) -> Finding | None:
        return None if case.owner == "tensorflow" else super().read(case)

    def blame(
        self, case: Case, frame: Frame, strength: float, did: str, *facts: tuple[str, str] | Evidence | None, fix: Fix
    ) -> Finding:
        """The code that was caught on the stack."""
        package = owner_of(frame) == "package"
        shared = native_code.run_in_parallel(case) and native_code.in_container(case) is not None
        if self.also_of_races and (shared or native_code.others_inside(case, frame)):
            strength = min(strength, RACED)
        return Finding(
            strength=strength - (PACKAGE_DISCOUNT if package else 0),
            title=f"{native_code.place(native_code.written_by(case, frame))} {did}",
            evidence=join(case.fault_evidence[:1], self._given(case), _on_stack(case, frame), evidence(*facts)),
            fixes=fixes_for_caller(case, frame) if package else (fix, *self._find_place(frame)),
            # Its own thread is beside what Python does meanwhile: the line that set it to work is of interest.
            location=custom_call(case) if case.location is None and owner_of(frame) == "custom" else None,
            op=native_code.op_of(case),
        )

    def _given(self, case: Case) -> tuple[Evidence, ...]:
        """What the op was given, where that explains it."""
        said = explained(case, self.slug) if case.kernel else None
        return evidence((f"it was given: {said.says}", "kernels in flight")) if said else ()

    def blame_by_fence(
        self, case: Case, block: FencedBlock, frame: Frame, strength: float, title: str, fix: Fix
    ) -> Finding:
        """The code that misused a fenced block, or had to do with it."""
        package, at_work = owner_of(frame) == "package", frame in case.native_stack
        if self.also_of_races and at_work and native_code.others_inside(case, frame):
            strength = min(strength, RACED)
        return Finding(
            strength=strength - (PACKAGE_DISCOUNT if package else 0),
            title=title,
            evidence=join(
                case.fault_evidence[:1], _on_stack(case, frame) if at_work else (), evidence(*fenced.facts_of(block))
            ),
            fixes=fixes_for_caller(case, frame) if package else (fix,),
            op=native_code.op_of(case),
            by_fence=True,
        )

    def blame_earlier(
        self,
        case: Case,
        strength: float,
        what: str,
        *facts: tuple[str, str] | Evidence | None,
        fix: Fix,
        others: Sequence[Suspect] = (),
    ) -> Finding:
        """Code that is gone from the stack: the damage was done before it was noticed.

        `others`: places of the program that may have done it as well; that a library is loaded is then no proof."""
        names = native_code.named(case.custom_libraries) or "native code"
        op = native_code.op_of(case)
        loaded = (f"{names} is loaded: {_own_code(case)}", "memory map")
        rival = f" or by {others[0].use.name} at {others[0].use.place}" if others else ""
        by = "by" if others else "perhaps by" if strength <= POSSIBLE else "most likely by"
        return Finding(
            strength=min(strength, ONE_OF_SEVERAL) if others else strength,
            title=f"{what}, {by} {f'the op {op} of ' if op else ''}{names}{rival}",
            evidence=join(case.fault_evidence, evidence(loaded, *facts), (each.evidence for each in others)),
            fixes=(fix, *((_rebuild(names, program=not case.crash.program.python),) if self.done_before else ())),
            location=custom_call(case),
            op=op,
        )

    def _find_place(self, frame: Frame) -> tuple[Fix, ...]:
        """What finds the line, where it is not known yet."""
        owner, known = owner_of(frame), frame.file is not None and frame.line is not None
        if owner != "custom" or (known and not self.done_before):
            return ()
        library = native_code.library_of(frame)
        if self.of_memory or self.done_before:
            return (_rebuild(library, program=frame.own),)
        return (consider(f"rebuild {library} with -g", "the report then names the line of its source"),)


def custom_call(case: Case) -> Location | None:
    """The line that calls the custom code, where there is only one such line."""
    crash = case.crash
    sources = sources_of(crash)
    ops = {op.lower() for op in loaded_ops(crash)}
    modules = {path.rpartition("/")[2].partition(".")[0] for path in native_code.extensions(case)}
    lines = {
        use.location
        for use in sources.calls
        if use.receiver and (use.name.replace("_", "").lower() in ops or use.receiver in modules)
    }
    lines = lines or {use.location for use in sources.foreign}
    return lines.pop() if len(lines) == 1 else None


def _on_stack(case: Case, frame: Frame) -> tuple[Evidence, ...]:
    whose = {"package": "code of an installed package", "python": "Python's own code", "numpy": "NumPy's own code"}
    told = whose.get(owner_of(frame), _own_code(case))
    return evidence((f"{native_code.place(frame)} was at work: {told}", "native stack"))


def _own_code(case: Case) -> str:
    not_of = "TensorFlow's code" if loads_tensorflow(case.crash) else "the system's code"
    return f"neither {not_of} nor an installed package's"


def _rebuild(names: str, program: bool = False) -> Fix:
    """A whole program brings the sanitizer along; a library needs it loaded first."""
    first = "" if program else "LD_PRELOAD the matching libasan.so and libstdc++.so; "
    stops = "it then stops at the wrong access with file and line."
    return consider(f"rebuild {names} with -g -O1 -fsanitize=address and run it again", first + stops)
