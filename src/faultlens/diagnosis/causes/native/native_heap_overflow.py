"""Did custom native code damage the heap before this crash?"""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, garbage, messages, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.custom_ops import loaded_ops
from faultlens.diagnosis.evidence.garbage import Garbage
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.diagnosis.evidence.suspects import suspects
from faultlens.diagnosis.evidence.wild import through_bad_object
from faultlens.records.crash import FencedBlock, Frame

_COMPARE = safe("compare the writes in the custom code with the sizes that were allocated")


class NativeHeapOverflow(NativeCause):
    """
    ## What it is
    Custom native code wrote past the end of a block of memory. Nothing happens at that moment: the allocator's
    notes, or somebody else's objects, are overwritten, and the program dies later, in innocent code.

    ## How it looks
    SIGABRT with a message of glibc (`malloc(): invalid size (unsorted)`, `corrupted size vs. prev_size`, `free():
    invalid next size`), or SIGSEGV inside malloc, free or Python's garbage collector.

    ## How to prove it
    `faultlens run --hunt` puts guards around some blocks (`--hunt=all`: around every one) and stops at the
    instruction that writes too far; the library rebuilt with `-fsanitize=address` stops at the very line.

    ## How to fix it
    Compare every write in the custom code with the size that was allocated: outputs have the size of the shape
    given to `allocate_output`, arrays the size they were created with.
    """

    slug = "native-heap-overflow"
    code = "FL603"
    headline = "custom native code damaged the heap"
    of_memory = done_before = True

    def examine(self, case: Case) -> Finding | None:
        if case.block is not None:
            return self._by_fence(case, case.block)
        if not case.custom_libraries or case.fault is None:
            return None
        said = case.said(messages.HEAP_OVERFLOW) if case.signal == "SIGABRT" else None
        invalid = case.said(messages.INVALID_FREE) if case.signal == "SIGABRT" else None
        heap, frame = native_code.in_heap_code(case), native_code.suspect(case)
        if frame is not None and (held := _overwritten(case, frame)):
            return self._pointer_overwritten(case, frame, held)
        strength = self._strength(case, said, invalid)
        if strength is None:
            return None
        found = self.blame_earlier(
            case,
            strength,
            "the heap was damaged before the program noticed",
            (f"glibc found the damage: {said or invalid}", "abort message") if said or invalid else None,
            (f"the allocator itself died, in {heap.function}", "native stack") if heap and not said else None,
            (f"it was noticed in {native_code.place(frame)}", "native stack") if frame else None,
            fix=_COMPARE,
            others=suspects(case),
        )
        return replace(found, fixes=(*hunt_further(case), _COMPARE))

    def _pointer_overwritten(self, case: Case, frame: Frame, held: Garbage) -> Finding:
        """The neighbour of the pointer ran over it, inside of one object too; or an index led out of its table."""
        found = self.blame(
            case,
            frame,
            POSSIBLE + 0.1,
            f"used a pointer that is none, it holds {held.words}: data were written over it, or it was read from "
            "behind the end of a table",
            (f"data lie where a pointer should be: {held.words}", "registers"),
            fix=safe(
                "look for what writes such data in front of the pointer, and bound the write",
                "a name or an array in the same structure; where the pointer comes from a table, check its index",
            ),
        )
        return replace(found, fixes=(*found.fixes[:1], *hunt_further(case)))

    def _by_fence(self, case: Case, block: FencedBlock) -> Finding | None:
        if block.misuse not in ("overflow", "underflow"):
            return None
        place = fenced.place_in(block)
        if block.seen == "access":
            frame, fault = native_code.suspect(case), case.fault
            if frame is None or fault is None or fault.access != "write":
                return None
            return self.blame_by_fence(
                case, block, frame, PROVEN, f"{native_code.place(frame)} wrote {place}", _COMPARE
            )
        made_by = fenced.own_frame(block.made)
        if made_by is not None:  # who writes to a block is nearly always who asked for it
            title = f"something was written {place} that {native_code.place(made_by)} had allocated"
            return self.blame_by_fence(case, block, made_by, STRONG, title, _COMPARE)
        if not case.custom_libraries:
            return None
        what = f"something was written {place}"
        found = self.blame_earlier(case, LIKELY - 0.1, what, *fenced.facts_of(block), fix=_COMPARE)
        return replace(found, by_fence=True)

    def _strength(self, case: Case, said: str | None, invalid: str | None) -> float | None:
        fault, frame = case.fault, native_code.suspect(case)
        if said:
            # Threads that race damage it as well.
            threads = sources_of(case.crash).parallel or native_code.on_other_threads(case)
            return LIKELY if threads else STRONG
        if invalid:  # freed by others: their block was overwritten; freed by the code itself: a wrong pointer
            return LIKELY if frame is None and not foreign_calls.called(case) else POSSIBLE - 0.05
        if fault is None or fault.signal != "SIGSEGV":
            return None
        if heap := native_code.in_heap_code(case):
            # What free is given may simply be wrong; what malloc finds in its own lists was damaged.
            freeing = "free" in heap.function and (frame is not None or foreign_calls.called(case) is not None)
            return POSSIBLE - 0.1 if freeing else LIKELY
        if frame is not None:
            return None
        if native_code.in_object_code(case):
            return LIKELY if accesses.holds_data(fault) or not native_code.extensions(case) else POSSIBLE - 0.1
        if accesses.is_wild(fault):  # somebody's pointer was overwritten
            at_work = case.op is not None and case.op in loaded_ops(case.crash)
            if case.owner == "tensorflow" and not at_work:
                return POSSIBLE  # it may have spoiled the pointer by itself
            return LIKELY + (0.1 if at_work else 0) - (0 if accesses.holds_data(fault) else 0.15)
        if case.owner == "tensorflow" and sources_of(case.crash).foreign and through_bad_object(case):
            return POSSIBLE  # TensorFlow's objects lie on the same heap as what Python hands to the library
        return None


def _overwritten(case: Case, frame: Frame) -> Garbage | None:
    """The data that the code took for a pointer of its own."""
    fault = case.fault
    if fault is None or fault.signal != "SIGSEGV" or frame is not case.native_stack[0] or foreign_calls.handed_in(case):
        return None
    if fault.access == "execute" or accesses.called_no_address(case.crash, fault):
        return None
    held = garbage.used_as_pointer(case.crash, fault)
    return held if held and held.kind in garbage.DATA else None
