"""Did another thread free or move a buffer while it was in use?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, carried_out, written
from faultlens.diagnosis.evidence import accesses
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.inspection.frames import is_main


class BufferRace(BufferCause):
    """
    ## What it is
    One thread frees, unmaps, resizes or rewrites a buffer while another still computes on it. NumPy, TensorFlow and
    ctypes release the GIL during long work, so the other thread does run.

    ## How it looks
    SIGSEGV in the middle of a loop over an array, not at its start, and not every time. Memory may be there again
    when somebody looks.

    ## How to prove it
    Nothing was mapped at the address when it was accessed, although there is memory now; or a thread of the program
    contains the release. With the threads run one after the other it does not happen.

    ## How to fix it
    Let one thread own the buffer: hand copies to others, join them before the release, or hold a lock during both
    the use and the release. `resize(refcheck=False)` switches off the check that would have helped.
    """

    slug = "buffer-race"
    code = "FL702"
    headline = "a buffer was freed or moved by another thread while in use"

    def examine(self, case: Case) -> Finding | None:
        fault, sources = case.fault, sources_of(case.crash)
        if fault is None or fault.code != "SEGV_MAPERR" or fault.address is None or not carried_out(case):
            return None
        if case.is_null or case.hits_stack_end:
            return None
        changed = accesses.changed_meanwhile(case.crash, fault)
        releases = sources.released_by_thread if accesses.is_hole(case.crash, fault.address) else None
        if accesses.is_hole(case.crash, fault.address) and _reads_on_thread(case):
            releases = releases or sources.release
        views = sources.borrowed_view or sources.addressed_view or sources.release or sources.pointers
        if not changed and not (releases and views):
            return None
        return self.found(
            case,
            STRONG if changed and sources.threads else LIKELY + 0.1,
            "a buffer was released or moved by another thread while it was being read",
            (f"nothing was mapped at {fault.address:#x} at the access, and now there is memory", "memory map")
            if changed
            else (f"nothing is mapped at {fault.address:#x} any more", "memory map"),
            written(sources.threads, "starts a thread"),
            written(releases, "gives memory back while other threads run"),
            fixes=(
                safe("join the threads that use the buffer before it is released or resized"),
                consider("hand a copy to the other thread, or hold a lock during use and release"),
            ),
        )


def _reads_on_thread(case: Case) -> bool:
    """A thread that the sources start was reading, and the main one went on."""
    thread = case.crash.crashed_thread
    return thread is not None and not is_main(thread, case.crash) and sources_of(case.crash).threads is not None
