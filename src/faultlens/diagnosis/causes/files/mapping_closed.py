from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.addresses import CANONICAL_TOP, mapping_at
from faultlens.diagnosis.evidence.case import Case, Mention
from faultlens.diagnosis.evidence.views import variable
from faultlens.diagnosis.evidence.wordings import Wording

# Ways to make a mapping, and to give it up, in the user's own lines.
MAPPED_ABOVE = 1 << 40


class MappingClosed(Cause):
    """
    ## What it is
    A mapping (a file through `mmap`/`np.memmap`, or `multiprocessing.shared_memory`) was closed while arrays still
    pointed into it. NumPy does not notice: `np.ndarray(buffer=shm.buf)` holds no claim that would keep the mapping
    open.

    ## How it looks
    SIGSEGV at an address where nothing is mapped, when the array is used next. `SharedMemory` closes itself when it
    is collected, so an array that outlives the function which made it is enough.

    ## How to prove it
    `SEGV_MAPERR` at an address that belongs to no mapping and is far from null and from the stack, in a program
    that makes and closes mappings.

    ## How to fix it
    Close the mapping after the last use of the array: keep the `SharedMemory` object next to the array, do not call
    `close()` or `_mmap.close()` before, or copy (`np.array(view)`) what is needed longer.
    """

    slug = "mapping-closed"
    code = "FL302"
    headline = "A mapping was closed while arrays still pointed into it"

    def examine(self, case: Case) -> Finding | None:
        if not _touches_hole(case):
            return None
        made, closed = case.mentions(Wording.MAPS), case.mentions(Wording.CLOSES)
        if made is None or (closed is None and case.mentions(Wording.SHARES_MEMORY) is None):
            return None
        on_purpose, name = case.mentions(Wording.CLOSES_ON_PURPOSE), variable(case)
        array = f"`{name}`" if name else "an array"
        return Finding(
            strength=_strength(case, known_trap=on_purpose is not None),
            title=f"{array} was used after the mapping that it points into had been closed",
            evidence=evidence(
                *case.fault_evidence[:1],
                ("nothing is mapped at this address", "/proc/PID/maps"),
                (f"a mapping is made at {made.file}:{made.line}: {made.text}", "source"),
                (f"it is closed at {closed.file}:{closed.line}: {closed.text}", "source")
                if closed
                else ("SharedMemory closes itself when it is collected", "source"),
            ),
            fixes=(
                consider("close the mapping after the last use of its arrays", _keep(made, closed)),
                safe("copy what is needed longer", f"np.array({name or 'view'}) before the mapping is closed"),
            ),
        )


def _keep(made: Mention, closed: Mention | None) -> str:
    """What to do with the object that owns the mapping."""
    file, line = (closed or made).file.rpartition("/")[2], (closed or made).line
    if closed is None:
        return f"keep the SharedMemory object of {file}:{line} as long as the array: self.owner = …"
    return f"it is closed at {file}:{line}; keep its owner next to the array"


def _touches_hole(case: Case) -> bool:
    fault = case.fault
    if fault is None or fault.signal != "SIGSEGV" or fault.code != "SEGV_MAPERR" or fault.address is None:
        return False
    if case.is_null or case.hits_stack_end or fault.address >= CANONICAL_TOP or not case.crash.mappings:
        return False
    # Files and shared memory are mapped high up, beside the libraries: lower addresses were never a mapping.
    return fault.address > MAPPED_ABOVE and mapping_at(case.crash, fault.address) is None


def _strength(case: Case, known_trap: bool) -> float:
    if case.custom_frame is not None or case.custom_libraries:
        return POSSIBLE  # code of the user's own can miss its buffers in many ways
    return STRONG if known_trap and case.owner in ("numpy", "tensorflow", "python", "unknown") else LIKELY
