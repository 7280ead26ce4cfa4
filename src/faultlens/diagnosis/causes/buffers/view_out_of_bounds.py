"""Does a view reach outside of the memory of its array?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, by_fence, carried_out, written
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, messages, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.diagnosis.evidence.suspects import is_running
from faultlens.records.crash import Fault, FencedBlock
from faultlens.records.diagnosis import Fix

_FIXES_STRIDED = (
    safe("use sliding_window_view, which checks its bounds"),
    consider("compute shape and strides from the array", "(shape - 1) * strides + itemsize <= nbytes"),
)
_FIXES_ADDRESSED = (
    safe("give the view no more elements than the memory at its address has", "ctypes.sizeof(owner), array.nbytes"),
    consider("make the view from its owner", "np.frombuffer(owner) and memoryview(owner) check their bounds"),
)


class ViewOutOfBounds(BufferCause):
    """
    ## What it is
    A view with a made-up shape, stride or size shows more memory than its array has: `as_strided` with a wrong
    shape or strides in elements instead of bytes, `from_address` or `as_array` with too large a size.

    ## How it looks
    SIGSEGV in NumPy or in a copy into TensorFlow, just behind (or before) memory that is there; or, when it was
    written to, a damaged heap later on. Often no crash, but garbage in the numbers.

    ## How to prove it
    `np.lib.array_utils.byte_bounds(view)` must lie within that of the array.

    ## How to fix it
    Use `np.lib.stride_tricks.sliding_window_view`, which checks, or compute the shape from the array's: strides are
    in bytes, and `(shape - 1) * strides + itemsize` must not exceed `nbytes`.
    """

    slug = "view-out-of-bounds"
    code = "FL707"
    headline = "a view reached outside of its array"

    def examine(self, case: Case) -> Finding | None:
        fault, sources = case.fault, sources_of(case.crash)
        view = sources.strided_view or sources.addressed_view
        if case.block is not None:
            return self._by_fence(case, case.block, view)
        if fault is None or view is None or foreign_calls.died_in_it(case):
            return None  # a call that was given an address, and not a view, is another cause
        strength = self._strength(case)
        damage = _damage(case)
        if strength is None:
            return None
        return self._reaches_out(
            case,
            strength,
            view,
            ("the access went to the edge of memory that is there", "memory map")
            if fault.address and accesses.ran_off(case.crash, fault.address)
            else None,
            (f"glibc found memory overwritten: {damage}", "abort message") if damage else None,
        )

    def _by_fence(self, case: Case, block: FencedBlock, view: Use | None) -> Finding | None:
        if block.misuse not in ("overflow", "underflow") or view is None or not carried_out(case):
            return None
        if block.seen == "access":
            if foreign_calls.died_in_it(case):
                return None
            return by_fence(self._reaches_out(case, PROVEN, view), block)
        return by_fence(self._reaches_out(case, LIKELY, view), block) if fenced.own_frame(block.made) is None else None

    def _reaches_out(self, case: Case, strength: float, view: Use, *facts: tuple[str, str] | None) -> Finding:
        return self.found(
            case,
            strength,
            f"a view made by {view.name} reaches outside of the memory of its array",
            written(view, "makes a view whose bounds nobody checks"),
            *facts,
            fixes=(*_prove(case), *(_FIXES_STRIDED if view.name == "as_strided" else _FIXES_ADDRESSED)),
        )

    def _strength(self, case: Case) -> float | None:
        fault, sources = case.fault, sources_of(case.crash)
        strided = sources.strided_view is not None
        if case.signal == "SIGABRT":
            if _damage(case) is None or sources.frees:
                return None
            if case.custom_libraries:
                return POSSIBLE + _near(case)
            return LIKELY + 0.05 if strided else LIKELY - 0.1
        if strided and fault is not None and native_code.suspect(case) is None and _overwritten(case, fault):
            return POSSIBLE + _near(case)
        if fault is None or fault.signal != "SIGSEGV" or fault.access == "execute" or not carried_out(case):
            return None
        if case.is_null or case.hits_stack_end or accesses.cut_pointer(case.crash, fault) or accesses.is_half(fault):
            return None
        if fault.address is None or accesses.is_accessible(case.crash, fault.address):
            return None
        past_end = accesses.ran_off(case.crash, fault.address) or accesses.started_inside(case.crash, fault)
        if strided:
            return STRONG if past_end else LIKELY + 0.05
        if sources.release or sources.deletions:
            return POSSIBLE - 0.1 if past_end else None
        return LIKELY + 0.05 if past_end else None


def _damage(case: Case) -> str | None:
    """What glibc said, when it found a block overwritten."""
    if case.signal != "SIGABRT":
        return None
    twice = case.said(messages.DOUBLE_FREE)
    return (
        case.said(messages.HEAP_OVERFLOW)
        or case.said(messages.INVALID_FREE)
        or (twice if twice and not messages.SURELY_TWICE.search(twice) else None)
    )


def _prove(case: Case) -> tuple[Fix, ...]:
    """Where it was only noticed that somebody had written too far."""
    if case.block is not None or case.fault is None or not (_damage(case) or _overwritten(case, case.fault)):
        return ()
    return hunt_further(case)[:1]


def _overwritten(case: Case, fault: Fault) -> bool:
    """Python's objects, or the allocator's lists, hold pointers that are none."""
    noticed = native_code.in_object_code(case) or native_code.in_heap_code(case)
    return noticed is not None and (accesses.is_wild(fault) or accesses.holds_data(fault))


def _near(case: Case) -> float:
    """What it adds that a view is made on the very line that was running."""
    views = (use for use in sources_of(case.crash).unchecked if is_running(case, use))
    return 0.1 if any(views) else 0.0
