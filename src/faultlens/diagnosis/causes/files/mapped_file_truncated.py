from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.addresses import PAGE, FileFault, file_at
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.storage import full_mapping

RECENT_S = 10.0


class MappedFileTruncated(Cause):
    """
    ## What it is
    A file that the program had mapped (`np.memmap`, `np.load(mmap_mode=…)`, a tflite model, a library) became
    shorter: another process, thread or an earlier line opened it for writing or truncated it. The pages behind the
    new end do not exist any more, and touching one is fatal.

    ## How it looks
    SIGBUS ("Bus error") wherever the data are used: in memcpy, in NumPy, even inside of a TensorFlow kernel,
    because tensors can share the mapping without a copy.

    ## How to prove it
    `BUS_ADRERR`; the address belongs to the mapping of the file, at an offset behind the file's present end. If the
    file was written anew in the meantime it may be long again; its time of change tells.

    ## How to fix it
    Write new data under a temporary name and rename it over the old one (`os.replace`): programs that have the old
    file mapped keep it. Copy what must not change (`np.array(mapped)`).
    """

    slug = "mapped-file-truncated"
    code = "FL301"
    headline = "A mapped file became shorter while it was in use"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if fault is None or fault.signal != "SIGBUS" or fault.address is None or case.sent or full_mapping(case):
            return None
        found = file_at(case.crash, fault.address)
        if found is None or found.mapping.path is None:
            return None
        path, behind = found.mapping.path, _is_behind_end(found)
        changed = _changed(case, found)
        return Finding(
            strength=PROVEN if behind else STRONG if changed else LIKELY,
            title=f"{path} became shorter while it was mapped"
            if behind
            else f"a page of the mapped file {path} was gone",
            evidence=evidence(
                *case.fault_evidence[:1],
                (f"the address is byte {found.offset} of {path}", "/proc/PID/maps"),
                (f"the file has only {found.state.size} bytes now", "stat") if behind and found.state else None,
                (f"the file {changed}", "stat") if changed else None,
            ),
            fixes=(
                safe("replace files instead of overwriting them", "write to a temporary name, then os.replace()"),
                consider("copy the data that must stay", "np.array(mapped) reads it once and for all"),
            ),
        )

    def rule_out(self, case: Case) -> str | None:
        fault = case.fault
        if fault is None or fault.address is None:
            return None
        if fault.signal != "SIGBUS":
            return f"touching a lost page of a mapped file raises SIGBUS, this was {fault.signal}"
        return None if file_at(case.crash, fault.address) else "the address belongs to no mapped file"


def _is_behind_end(found: FileFault) -> bool:
    size = found.state.size if found.state else None
    return size is not None and found.offset >= -(-size // PAGE) * PAGE


def _changed(case: Case, found: FileFault) -> str | None:
    """Signs that the file is not what it was when it was mapped."""
    state = found.state
    if state is None:
        return None
    if state.state in ("deleted", "replaced", "missing"):
        return f"was {state.state} since"
    if state.modified is not None and case.crash.time is not None and case.crash.time - state.modified < RECENT_S:
        return f"was written {max(0.0, case.crash.time - state.modified):.1f} s before the end"
    return None
