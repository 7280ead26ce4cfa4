"""Was the heap damaged by somebody who is gone from the stack?"""

from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, STRONG, Cause, Finding, evidence, join
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, messages, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.suspects import suspects
from faultlens.inspection.frames import short_function
from faultlens.records.crash import FencedBlock
from faultlens.records.diagnosis import Evidence

_ABORTS = ("SIGABRT", "SIGTRAP", "SIGILL")  # how allocators give up
_FAULTS = ("SIGSEGV", "SIGBUS")
_SMALL_OBJECTS = re.compile(r"^(?:_?Py(?:Object|Mem)_(?:Raw)?(?:Malloc|Calloc|Realloc|Free)|pymalloc_\w+)$")


class HeapCorruption(Cause):
    """
    ## What it is
    Something wrote past the end of a block of memory, used one that had been freed, or freed one twice. The
    allocator's notes or somebody's objects lie beside it; they are damaged, and the program dies later, where they
    are used. Who did it is not known yet: where the verdict is this one, nothing in the record tells.

    ## How it looks
    SIGABRT with a message of the allocator (`malloc(): invalid size`, `free(): invalid pointer`, `corrupted size vs.
    prev_size`, `double free or corruption`), or SIGSEGV inside malloc, free or Python's handling of objects. The line
    that is shown is where it was noticed, not where it was done; it may change from run to run.

    ## How to prove it
    `faultlens run --hunt` puts guards around some blocks, `--hunt=all` around every one, and stops at the very
    access; `faultlens op sanitize` builds a custom op again with AddressSanitizer.

    ## How to fix it
    Find the writer first. Usual suspects: `ctypes.memmove`, `memset` and foreign functions that are given an address
    and a count, `as_strided` and `from_address` views, custom ops and extensions.
    """

    slug = "heap-corruption"
    code = "FL617"
    headline = "the heap was corrupted earlier than the program died"

    def examine(self, case: Case) -> Finding | None:
        if case.block is not None:
            return self._by_fence(case, case.block)
        what, strength, fact = _noticed(case)
        if not what:
            return None
        where = f" at {case.location.file.rpartition('/')[2]}:{case.location.line}" if case.location else ""
        return Finding(
            strength=strength,
            title=what.format(where=where),
            evidence=join(case.fault_evidence, evidence(fact), _suspects(case)),
            fixes=hunt_further(case),
            general=True,
        )

    def _by_fence(self, case: Case, block: FencedBlock) -> Finding | None:
        if block.misuse not in ("overflow", "underflow"):
            return None
        culprit, fault = case.culprit or next(iter(case.native_stack), None), case.fault
        place = f"{fenced.place_in(block)} that {fenced.allocator(block)} had allocated"
        if block.seen == "access" and culprit is not None and fault is not None:
            title = f"{native_code.place(culprit)} {'wrote' if fault.access == 'write' else 'read'} {place}"
        else:
            title = f"something was written {place}; it was seen {fenced.seen(block)}, which is later than it was done"
        return Finding(
            strength=STRONG,
            title=title,
            evidence=join(case.fault_evidence, evidence(*fenced.facts_of(block)), _suspects(case)),
            fixes=hunt_further(case),
            general=True,
            by_fence=True,
        )


def _noticed(case: Case) -> tuple[str, float, tuple[str, str] | None]:
    """What was noticed, where, how sure that is, and the words for it."""
    heap = native_code.in_heap_code(case)
    if case.signal in _ABORTS:
        for pattern, what, strength in _WORDS:
            if said := case.said(pattern):
                return what, strength, (f"the allocator found it: {said}", "abort message")
    if case.signal not in _FAULTS or case.fault is None or case.is_null or case.hits_stack_end:
        return "", 0.0, None
    small = next((frame for frame in case.native_stack[:2] if _SMALL_OBJECTS.match(frame.function)), None)
    if allocator := heap or small:
        fact = (f"the allocator itself died, in {short_function(allocator.function)}", "native stack")
        return _EARLIER, LIKELY, fact
    if foreign_calls.died_in_it(case) or foreign_calls.by_ctypes_itself(case):
        return "", 0.0, None  # the pointer came from Python's side: no object of the interpreter's is known to be bad
    if case.owner == "python" and (accesses.is_wild(case.fault) or accesses.holds_data(case.fault)):
        fact = ("Python's own code used a pointer that is not one: data lie where an object should be", "registers")
        return _OVERWRITTEN, LIKELY, fact
    return "", 0.0, None


_EARLIER = "the heap was corrupted earlier; it was noticed{where}, which is not where it was done"
_OVERWRITTEN = "a Python object was overwritten or freed earlier; it was noticed{where}, which is not where it was done"
_TWICE = "a block was freed{where} that had been freed before, or the heap was corrupted earlier"
_INVALID = "free(){where} was given an address that is not a block, or the heap was corrupted earlier"
_WORDS = (
    (messages.HEAP_OVERFLOW, _EARLIER, STRONG),
    (messages.DOUBLE_FREE, _TWICE, LIKELY + 0.05),
    (messages.INVALID_FREE, _INVALID, LIKELY + 0.05),
)


def _suspects(case: Case) -> tuple[Evidence, ...]:
    return tuple(each.evidence for each in suspects(case))
