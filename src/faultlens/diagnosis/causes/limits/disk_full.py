from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.saving import left_behind, save_with_faultlens
from faultlens.diagnosis.evidence.storage import FullMapping, full_mapping, lost_output, no_space_message, writes_files
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.sizes import in_words


class DiskFull(Cause):
    """
    ## What it is
    A file system (or a quota) was used up while the program wrote: a model, a checkpoint, a log, a mapped array.

    ## How it looks
    Mostly an exception: "No space left on device" (errno 28). But a write through a mapping (`np.memmap`) is
    SIGBUS, and libhdf5 raises first and then crashes when it closes the damaged file at exit, long after the
    program believed that it had got over the failed save.

    ## How to prove it
    The message on stderr, `df` of the folder; for SIGBUS the address lies within the mapped file, and its file
    system has no free blocks.

    ## How to fix it
    Free space or write elsewhere; keep fewer checkpoints (`max_to_keep`). Check the space before saving, write to a
    temporary name and rename it, so that a failed save does not destroy the previous one; `faultlens.save` does so.
    Allocate mapped files in advance with `os.posix_fallocate`.
    """

    slug = "disk-full"
    code = "FL209"
    headline = "A file system ran full"

    def examine(self, case: Case) -> Finding | None:
        if (found := full_mapping(case)) is not None:
            return _mapped(case, found)
        message = no_space_message(case)
        if message is None or (case.crash.outcome.kind in ("exit", "ok") and not _filled_by_output(case)):
            return None
        return Finding(
            strength=_strength(case, message),
            title="no space was left on the device while the program wrote"
            + (", and the failed write led to the crash" if case.fault is not None else ""),
            evidence=evidence(
                message,
                ("the program had begun to shut down when it crashed", "stack") if case.crash.exiting else None,
                *case.fault_evidence,
                ("ENOSPC is returned only when a file system has no free blocks", "errno") if not case.fault else None,
                *left_behind(case),
            ),
            fixes=_fixes(case),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.fault is None or case.crash.output.stderr is None or writes_files(case):
            return None
        return "it was writing no file, and nothing reported a full disk (ENOSPC)"


def _mapped(case: Case, found: FullMapping) -> Finding:
    return Finding(
        strength=LIKELY + 0.05 if found.in_memory else PROVEN,
        title=f"the file system of {found.path} was full when a page of it was written",
        evidence=evidence(
            *case.fault_evidence[:1],
            (f"the address is byte {found.offset} of {found.path}, within its size", "/proc/PID/maps"),
            (f"{in_words(found.free)} are free in its file system", "statvfs") if found.free is not None else None,
        ),
        fixes=_fixes(case),
    )


def _filled_by_output(case: Case) -> bool:
    return "[Errno 28]" in (lost_output(case) or "")


def _strength(case: Case, message: Evidence) -> float:
    if _filled_by_output(case):
        return PROVEN
    if case.fault is None:
        return PROVEN if message.source == "traceback" else POSSIBLE
    if case.crash.exiting or writes_files(case):
        return STRONG
    return POSSIBLE  # the program had got over it, and something else may have happened since


def _fixes(case: Case) -> tuple[Fix, ...]:
    return (
        consider("free space, or write to another file system"),
        *(save_with_faultlens(case, "it looks first whether there is room; ") or _BY_HAND),
    )


_BY_HAND = (
    safe("check the free space before writing", "shutil.disk_usage(folder).free"),
    safe("write to a temporary name and rename it", "so that a failed save leaves the previous file as it was"),
)
