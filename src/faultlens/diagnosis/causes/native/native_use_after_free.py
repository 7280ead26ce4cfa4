"""Is it custom native code that used memory after it was freed?"""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, garbage, native_code, views
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.garbage import Garbage
from faultlens.diagnosis.evidence.sources import Use
from faultlens.records.crash import Fault, FencedBlock, Frame
from faultlens.records.diagnosis import Fix


def _keep_owner(case: Case) -> Fix:
    owner = "store the Tensor" if native_code.is_op(case) else "set it to null where it is freed"
    return consider("keep the owner of the memory, not a bare pointer to it", f"{owner}, or copy the data")


def _keep_alive(use: Use, name: str) -> Fix:
    """The library keeps a pointer to what Python lets go."""
    return safe(
        f"keep `{name}` alive as long as the library uses it",
        f"{use.name} at {use.place} keeps only its address: store the object beside the handle, self._kept = …",
    )


class NativeUseAfterFree(NativeCause):
    """
    ## What it is
    Custom native code used memory that had been given back: a pointer into a tensor kept beyond `Compute`, an
    object that was deleted elsewhere, a handle that was closed.

    ## How it looks
    Mostly silent: the memory still holds the old values, or somebody else's. When the block was large it is
    unmapped and the access is a SIGSEGV; when an object was deleted, its pointers hold what the allocator left
    there.

    ## How to prove it
    The pointer itself leads to memory that is not mapped, or holds what glibc writes into freed blocks.
    `faultlens run --hunt` (again, or with `=all`) stops at the use and tells who allocated the block and who freed it.

    ## How to fix it
    Keep the owner, not the pointer: store the `Tensor` (it counts references), a `shared_ptr`, or a reference to
    the Python object; copy what must outlive the call.
    """

    slug = "native-use-after-free"
    code = "FL604"
    headline = "custom native code used freed memory"
    of_memory = done_before = True
    also_of_races = True

    def examine(self, case: Case) -> Finding | None:
        frame, fault = native_code.suspect(case), case.fault
        if case.block is not None:
            return self._by_fence(case, case.block, frame)
        if frame is None or fault is None or fault.signal != "SIGSEGV" or fault.access == "execute" or case.is_null:
            return None
        address = accesses.target(fault)
        if address is None or frame is not case.culprit or native_code.in_heap_code(case) or accesses.misaligned(fault):
            return None
        if case.hits_stack_end or (fault.instruction and fault.instruction.text.startswith("ret")):
            return None
        freed = accesses.freed_link(case.crash, fault)
        held = garbage.used_as_pointer(case.crash, fault)
        filled = held is not None and held.kind == "freed"
        wild = accesses.is_wild(fault)
        hole = accesses.is_hole(case.crash, address) and accesses.is_near(case.crash, address)
        hole = hole and not accesses.ran_off(case.crash, address)
        gone = hole and not accesses.started_inside(case.crash, fault) and not accesses.is_half(fault)
        if not (freed or filled or wild or gone):
            return None
        lost = views.given_away(case) if gone or freed else None
        strength = LIKELY + 0.05 if lost and gone else self._strength(case, fault, bool(freed or filled), gone, held)
        found = self.blame(
            case,
            frame,
            strength,
            "used memory that had been freed"
            if freed or filled or gone
            else "used a pointer that is no address: the memory it lay in was freed, or it was never set",
            ("its pointer holds what glibc leaves in a freed block: a link to the next one", "registers")
            if freed
            else None,
            (f"its pointer leads to {address:#x}, where nothing is mapped any more", "memory map") if gone else None,
            (f"its pointer is not an address at all: {address:#x}", "registers") if wild else None,
            (f"its pointer holds {held.words}", "registers") if held else None,
            (f"{lost[0].place}: {lost[0].name} was given `{lost[1]}`, which is gone", "source") if lost else None,
            fix=_keep_alive(*lost) if lost else _keep_owner(case),
        )
        # On a thread of its own no line of the program stands for it: the one that handed the memory over does.
        handed = lost[0] if lost and case.location is None and found.location is None else None
        return replace(found, location=handed.location, op=found.op or handed.name) if handed else found

    def _strength(self, case: Case, fault: Fault, freed: bool, gone: bool, held: Garbage | None) -> float:
        if freed:
            return STRONG
        if gone:
            return POSSIBLE - 0.05 if foreign_calls.handed_in(case) else LIKELY - 0.1
        if accesses.called_no_address(case.crash, fault) or (held and held.kind in garbage.DATA):
            return POSSIBLE - 0.1  # overwritten, or never set, just as well
        calls = bool(fault.instruction and fault.instruction.text.startswith(("call", "jmp")))
        return LIKELY if calls else POSSIBLE

    def _by_fence(self, case: Case, block: FencedBlock, frame: Frame | None) -> Finding | None:
        if block.misuse != "use after free":
            return None
        if frame is not None and not foreign_calls.handed_in(case):
            title = f"{native_code.place(frame)} used {fenced.place_in(block)}"
            return self.blame_by_fence(case, block, frame, PROVEN, title, _keep_owner(case))
        freed_by = fenced.own_frame(block.freed)
        if frame is None and freed_by is not None and not fenced.asked_by_python(block.freed):
            title = f"{native_code.place(freed_by)} freed a block of {block.size:,} bytes that was still in use"
            return self.blame_by_fence(case, block, freed_by, STRONG, title, _keep_owner(case))
        return None
