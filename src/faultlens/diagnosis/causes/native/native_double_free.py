"""Is it custom native code that freed memory twice?"""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, consider
from faultlens.diagnosis.causes.native.base import NativeCause
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, messages, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import sources_of
from faultlens.diagnosis.evidence.suspects import suspects
from faultlens.inspection.frames import short_function
from faultlens.records.crash import FencedBlock, Frame
from faultlens.records.diagnosis import Fix

_DESTRUCTOR = r"(?<!std)::~(?!(?:basic_string|_|vector|shared_ptr|unique_ptr|allocator))\w+\("
_SHARED = r"_Sp_counted|std::__shared_(?:ptr|count)|std::shared_ptr"
_CAPSULE = r"capsule_dealloc|dlpack|DLPack|DLManaged|(?i:capsule.*(?:del|dtor|free|gone|destr))"


def _owner(case: Case) -> Fix:
    """By what dies on the stack: who the second owner is."""
    destructor = native_code.dies(case, _DESTRUCTOR)
    name = short_function(destructor.function).partition("::~")[0] if destructor else "T"
    if native_code.dies(case, _CAPSULE):
        return consider(
            "call the deleter of a DLPack tensor once: rename the capsule when it is consumed",
            'PyCapsule_SetName(capsule, "used_dltensor"); its destructor then leaves the tensor alone',
        )
    if native_code.dies(case, _SHARED):
        return consider(
            f"make one std::shared_ptr<{name}> and copy it",
            "two that are made of the same bare pointer both delete it; std::enable_shared_from_this helps",
        )
    if destructor is not None:
        return consider(
            f"forbid copies of {name}, or let them copy what they own",
            f"{name}(const {name}&) = delete; a copied pointer is freed by both",
        )
    return consider("give every block one owner", f"unique_ptr, vector{', allocate_temp' * native_code.is_op(case)}")


class NativeDoubleFree(NativeCause):
    """
    ## What it is
    Custom native code freed a block twice, freed memory that belongs to somebody else (a tensor's buffer), or
    something that never came from the allocator.

    ## How it looks
    SIGABRT with `double free or corruption`, `free(): double free detected in tcache 2` or `free(): invalid
    pointer`; for large blocks SIGSEGV inside free.

    ## How to prove it
    The stack shows who called free the second time. AddressSanitizer shows all three: who allocated, who freed
    first, who freed again.

    ## How to fix it
    Give every block one owner: `std::vector`, `std::unique_ptr`, `allocate_temp`. Never free what TensorFlow, NumPy
    or Python gave you.
    """

    slug = "native-double-free"
    code = "FL605"
    headline = "custom native code freed memory twice"
    of_memory = done_before = True
    also_of_races = True

    def examine(self, case: Case) -> Finding | None:
        frame, heap = native_code.suspect(case), native_code.in_heap_code(case)
        if case.block is not None:
            return self._by_fence(case, case.block, frame)
        twice = case.said(messages.DOUBLE_FREE) if case.signal == "SIGABRT" else None
        invalid = case.said(messages.INVALID_FREE) if case.signal == "SIGABRT" else None
        faulted = case.signal == "SIGSEGV" and heap is not None and "free" in heap.function
        if not (twice or invalid or (faulted and frame)) or not (frame or case.custom_libraries):
            return None
        said = (f"glibc found it: {twice or invalid}", "abort message") if twice or invalid else None
        if frame is None:
            if foreign_calls.called(case) or (sources_of(case.crash).frees and not twice):
                return None
            found = self.blame_earlier(
                case,
                LIKELY if twice else POSSIBLE,
                "a block of memory was freed twice or overwritten",
                said,
                fix=_owner(case),
                others=suspects(case),
            )
            return replace(found, fixes=(*hunt_further(case), _owner(case)))
        certain = twice is not None and messages.SURELY_TWICE.search(twice)
        link = accesses.freed_link(case.crash, case.fault) if faulted and case.fault else None
        strength = STRONG if certain else LIKELY + 0.07 if twice or link else LIKELY - 0.1
        if native_code.on_started_thread(case) or native_code.on_own_thread(case):
            strength -= 0.15  # several threads that free the same block look alike
        if foreign_calls.died_in_it(case) and sources_of(case.crash).frees:
            strength = POSSIBLE  # the function does what Python asks for: free
        destructor = native_code.dies(case, _DESTRUCTOR)
        dying = short_function(destructor.function) if destructor else None
        did = "freed memory that was freed before, or not its own"
        return self.blame(
            case,
            frame,
            strength,
            f"{did}: what it destroys was destroyed before" if dying else did,
            said,
            ("the pointer to free holds what glibc leaves in a freed block", "registers") if link else None,
            (f"an object was being destroyed: {dying}", "native stack") if dying else None,
            fix=_owner(case),
        )

    def _by_fence(self, case: Case, block: FencedBlock, frame: Frame | None) -> Finding | None:
        if block.misuse not in ("double free", "invalid free"):
            return None
        if frame is None:  # others free it in good faith, who freed it before is to blame
            frame = fenced.own_frame(block.freed) if not fenced.asked_by_python(block.freed) else None
        elif fenced.asked_by_python(case.native_stack) and (
            block.misuse == "invalid free" or fenced.asked_by_python(block.freed)
        ):
            return None  # Python asked for both
        if frame is None:
            return None
        title = f"{native_code.place(frame)} freed {fenced.place_in(block)}"
        return self.blame_by_fence(case, block, frame, PROVEN, title, _owner(case))
