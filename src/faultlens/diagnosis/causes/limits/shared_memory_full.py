from __future__ import annotations

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.leaks import evidence_of, fixes_of, growth_of
from faultlens.diagnosis.evidence.storage import full_mapping, no_space_message
from faultlens.text.sizes import in_words


class SharedMemoryFull(Cause):
    """
    ## What it is
    The program wrote to a mapping in `/dev/shm` or another tmpfs whose space was used up. Making the file reserves
    nothing; each page is taken when it is first touched, and when none is left the kernel sends SIGBUS.

    ## How it looks
    SIGBUS ("Bus error") in memcpy or in any code that fills the buffer. Typical of containers, where `/dev/shm` has
    64 MiB, and of `multiprocessing.shared_memory` and data loaders with worker processes.

    ## How to prove it
    `BUS_ADRERR` at an address inside of the mapped file's size, and `df /dev/shm` shows no space.

    ## How to fix it
    Make it larger (`docker run --shm-size=8g`, an `emptyDir` with `medium: Memory` in Kubernetes), share less, and
    unlink segments that earlier runs left behind.
    """

    slug = "shared-memory-full"
    code = "FL208"
    headline = "Shared memory (/dev/shm, tmpfs) was used up"

    def examine(self, case: Case) -> Finding | None:
        found = full_mapping(case)
        growth = growth_of(case.crash, "shared memory")
        if found is not None and found.in_memory:
            return Finding(
                strength=PROVEN if found.free is not None else STRONG,
                title=f"no space was left for {found.path}, which is kept in shared memory",
                evidence=evidence(
                    *case.fault_evidence[:1],
                    (f"the address is byte {found.offset} of {found.path}, within its size", "/proc/PID/maps"),
                    (f"{in_words(found.free)} are free in its file system", "statvfs")
                    if found.free is not None
                    else None,
                    *evidence_of(growth),
                ),
                fixes=(*fixes_of(growth), *_FIXES),
            )
        message = no_space_message(case)
        if message is None or "/dev/shm" not in message.fact or case.fault is not None:
            return None
        return Finding(
            strength=STRONG,
            title="no space was left in /dev/shm",
            evidence=evidence(message, ("the file is in shared memory", "message"), *evidence_of(growth)),
            fixes=(*fixes_of(growth), *_FIXES),
        )


_FIXES = (
    safe("make shared memory larger", "docker run --shm-size=8g; mount -o remount,size=8g /dev/shm"),
    consider("share less, or remove what earlier runs left in /dev/shm"),
)
