"""Was a read-only mapping written to?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, carried_out, written
from faultlens.diagnosis.evidence import accesses
from faultlens.diagnosis.evidence.addresses import mapping_at
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of


class ReadOnlyWrite(BufferCause):
    """
    ## What it is
    Something wrote to memory that is mapped for reading only: an array of `np.load(…, mmap_mode="r")` handed to
    native code by its address, a `bytes` object from a mapped file, constant data of a library. NumPy's own check
    (`writeable=False`) is bypassed by bare pointers.

    ## How it looks
    SIGSEGV with the code `SEGV_ACCERR`, a write access, at an address that is mapped.

    ## How to prove it
    The mapping at the address has no `w` in its permissions; the memory map names the file.

    ## How to fix it
    Copy before writing (`np.array(x)`), or map it copy-on-write (`mmap_mode="c"`) or writable (`mmap_mode="r+"`,
    which changes the file).
    """

    slug = "read-only-write"
    code = "FL708"
    headline = "something wrote to read-only memory"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if fault is None or fault.code != "SEGV_ACCERR" or fault.access != "write" or fault.address is None:
            return None
        mapping = mapping_at(case.crash, fault.address)
        if mapping is None or "w" in mapping.permissions or "r" not in mapping.permissions or case.hits_stack_end:
            return None
        if accesses.left_writable(case.crash, fault):
            return None  # it ran on from the memory in front of it
        of_library = "x" in mapping.permissions or ".so" in (mapping.path or "")
        what = (mapping.path or "anonymous memory").rpartition("/")[2]
        return self.found(
            case,
            (LIKELY if carried_out(case) else POSSIBLE - 0.1) if of_library else PROVEN,
            f"something wrote to {what}, which is mapped for reading only",
            (f"{fault.address:#x} is mapped {mapping.permissions}: {mapping.path or 'anonymous'}", "memory map"),
            written(sources_of(case.crash).mapped_file, "maps a file"),
            fixes=_OF_CONSTANTS if mapping.path == case.crash.program.executable else _OF_ARRAYS,
        )


_OF_ARRAYS = (
    safe("copy the array before it is written to", "np.array(x)"),
    consider('map it copy-on-write: mmap_mode="c"', 'or "r+", if the file shall change'),
)
_OF_CONSTANTS = (safe("copy the constant before it is written to", 'char text[] = "…" instead of char *text = "…"'),)
