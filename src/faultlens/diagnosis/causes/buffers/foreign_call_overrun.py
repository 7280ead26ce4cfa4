"""Did a call that Python made through ctypes go past the end of its memory?"""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, by_fence
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.records.crash import Fault, FencedBlock
from faultlens.records.diagnosis import Fix


class ForeignCallOverrun(BufferCause):
    """
    ## What it is
    Python told a C function to read or write more bytes than the block at that address has: `ctypes.memset`,
    `ctypes.memmove`, `ctypes.string_at`, `libc.strcpy`, an index of a ctypes pointer. They are given a bare address,
    and nothing checks how much memory is there.

    ## How it looks
    A write damages what lies behind the block, and the program dies later, in innocent code, with words like
    `malloc(): invalid size`. Only a very long one reaches the end of the memory at once: SIGSEGV in `memset` or
    `memmove`, right below ctypes.

    ## How to prove it
    `faultlens run --hunt=all` stops at the call and tells the size of the block, who allocated it, and how far the call
    went. Or compare the count with `ctypes.sizeof(buffer)`, `array.nbytes`, `len(data)`.

    ## How to fix it
    Take the count from the block, not from what is copied: `min(len(data), ctypes.sizeof(buffer))`. Better, do without
    the address: `buffer[:len(data)] = data`, `array[:] = …` and `memoryview` check their bounds.
    """

    slug = "foreign-call-overrun"
    code = "FL710"
    headline = "a call through ctypes went past the end of its memory"

    def examine(self, case: Case) -> Finding | None:
        if case.block is not None:
            return self._by_fence(case, case.block)
        fault = case.fault
        if fault is None or fault.signal != "SIGSEGV" or fault.access == "execute" or fault.address is None:
            return None
        if not _carries_out(case) or case.is_null or case.hits_stack_end or accesses.is_half(fault):
            return None
        if accesses.cut_pointer(case.crash, fault) or not _left_memory(case, fault):
            return None
        return self.found(
            case,
            LIKELY + 0.1,
            f"{_caller(case)} {_did(case)} past the end of the memory that it was given",
            ("the access went to the edge of memory that is there", "memory map"),
            fixes=_fixes(case),
        )

    def _by_fence(self, case: Case, block: FencedBlock) -> Finding | None:
        if block.misuse not in ("overflow", "underflow"):
            return None
        if block.seen != "access":
            return self._seen_later(case, block)
        if not _carries_out(case):
            return None
        edge = "before the beginning" if block.misuse == "underflow" else "past the end"
        of = f"a block of {block.size:,} bytes that {fenced.allocator(block)} had allocated"
        found = self.found(
            case,
            PROVEN,
            f"{_caller(case)} {_did(case)} {edge} of {of}",
            (_extent(case, block), fenced.FENCE),
            fixes=_fixes(case),
        )
        return by_fence(found, block)

    def _seen_later(self, case: Case, block: FencedBlock) -> Finding | None:
        """The writer is gone from the stack; there is one call in the sources that writes to bare addresses."""
        writes = sources_of(case.crash).raw_writes
        if len({use.location for use in writes}) != 1 or fenced.own_frame(block.made) is not None:
            return None
        write = writes[0]
        found = self.found(
            case,
            STRONG if not case.custom_libraries else LIKELY,
            f"something was written {fenced.place_in(block)} that {fenced.allocator(block)} had allocated, "
            f"most likely by {write.name} at {write.place}",
            (f"{write.place}: {write.name} is the only call that writes to a bare address", "source"),
            fixes=_fixes(case, write),
        )
        return replace(by_fence(found, block), location=write.location)


def _carries_out(case: Case) -> bool:
    """What died does as it is told: libc's functions, and ctypes itself."""
    entry = foreign_calls.called(case)
    if entry is None:  # a view with a made-up size is another cause
        return foreign_calls.by_ctypes_itself(case) is not None and sources_of(case.crash).addressed_view is None
    return foreign_calls.died_in_it(case) and foreign_calls.does_as_told(entry)


def _left_memory(case: Case, fault: Fault) -> bool:
    if accesses.left_writable(case.crash, fault):
        return True
    if fault.address is None or accesses.is_accessible(case.crash, fault.address):
        return False
    return accesses.ran_off(case.crash, fault.address) or accesses.started_inside(case.crash, fault)


def _caller(case: Case) -> str:
    if foreign_calls.called(case) is None:
        return "a ctypes object or pointer"
    return f"{foreign_calls.name_of(case)}, called through ctypes,"


def _did(case: Case) -> str:
    writes = case.fault is not None and case.fault.access == "write"
    if foreign_calls.called(case) is None:
        return "was written to" if writes else "was read"
    return "wrote" if writes else "read"


def _extent(case: Case, block: FencedBlock) -> str:
    """By how many bytes."""
    fault, end = case.fault, block.start + block.size
    assert fault is not None
    span = accesses.copied_bytes(fault, fault.access == "write") if foreign_calls.called(case) else None
    verb = "write" if fault.access == "write" else "read"
    if span is None or block.misuse == "underflow" or span[1] <= end:
        return f"it was stopped {fenced.place_in(block)}; how much further it would have gone is not known"
    return (
        f"it was about to {verb} up to byte {span[1] - block.start:,}: {span[1] - end:,} bytes more than the block has"
    )


def _fixes(case: Case, call: Use | None = None) -> tuple[Fix, ...]:
    call = call or foreign_calls.call_in_sources(case)
    where = f" of {call.name} at {call.place}" if call else ""
    if call is None and foreign_calls.by_ctypes_itself(case):
        return (safe("keep the index below the number of elements", "pointers of ctypes do not know where they end"),)
    return (
        safe(f"limit the count{where} to the size of the block", "min(count, ctypes.sizeof(buffer)), or array.nbytes"),
        consider(
            "do without the bare address", "buffer[:len(data)] = data, array[:] = …, memoryview: they check bounds"
        ),
    )
