"""Was memory used after it was freed or unmapped under an array or tensor?"""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, WEAK, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, by_fence, carried_out, written
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.evidence import accesses, fenced, messages, native_code, views
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.ops import loads_tensorflow
from faultlens.diagnosis.evidence.sources import Sources, Use, sources_of
from faultlens.diagnosis.evidence.suspects import used_after_release
from faultlens.diagnosis.evidence.views import Lent
from faultlens.records.crash import Fault, FencedBlock
from faultlens.records.diagnosis import Fix


class DanglingBuffer(BufferCause):
    """
    ## What it is
    An array or tensor shows memory that it does not own, and the owner gave the memory back: `free` or `munmap`
    through ctypes, `del` of the array whose address was taken, the end of a dlpack producer, the next call of a
    function that had returned a buffer of its library's own, `resize(refcheck=False)`. The view does not know.

    ## How it looks
    SIGSEGV at an address where nothing is mapped, inside code that only copies or computes (`memmove`, NumPy's
    loops, Eigen). With small buffers often no crash at all, but wrong numbers.

    ## How to prove it
    The fault address is in a hole of the address space where memory had been; the sources create a view without an
    owner (`from_address`, `as_array`, `frombuffer`, `from_dlpack`, a bare `a.ctypes.data`) and release the memory.

    ## How to fix it
    Copy before the memory goes away (`np.array(view)`, `tf.identity` does not help: use
    `tf.constant(np.array(view))`), or keep the owner alive as long as any view: store it beside the array, release
    it last.
    """

    slug = "dangling-buffer"
    code = "FL701"
    headline = "memory was freed while an array or tensor still used it"

    def examine(self, case: Case) -> Finding | None:
        fault = case.fault
        if case.block is not None:
            return self._by_fence(case, case.block)
        if case.signal == "SIGABRT":
            return self._damaged_heap(case)
        if native_code.in_heap_code(case):
            return None  # it was freed again, not used
        if fault is None or fault.code != "SEGV_MAPERR" or fault.address is None or fault.access == "execute":
            return None
        if not accesses.is_hole(case.crash, fault.address) or case.is_null or case.hits_stack_end:
            return None
        if native_code.on_own_thread(case):
            return self._under_thread(case, fault)
        if not carried_out(case):
            return None
        sources = sources_of(case.crash)
        strength = self._strength(case, sources)
        if (
            strength is None
            or accesses.cut_pointer(case.crash, fault)
            or not accesses.is_near(case.crash, fault.address)
        ):
            return None
        return self._outlived(
            case,
            strength,
            (f"nothing is mapped at {fault.address:#x}, among addresses where memory is handed out", "memory map"),
        )

    def _by_fence(self, case: Case, block: FencedBlock) -> Finding | None:
        by_python = fenced.asked_by_python(block.freed)
        if block.misuse != "use after free" or not carried_out(case):
            return None
        if fenced.own_frame(block.freed) is not None and not by_python:
            return None  # native code freed it by itself
        return by_fence(self._outlived(case, PROVEN if by_python else STRONG), block)

    def _under_thread(self, case: Case, fault: Fault) -> Finding | None:
        """A thread of a library works on memory that Python handed over once, and has given back meanwhile."""
        release, frame = sources_of(case.crash).release, case.custom_frame
        if release is None or frame is None or accesses.started_inside(case.crash, fault):
            return None
        library = native_code.library_of(frame)
        found = self.found(
            case,
            LIKELY,
            f"memory was given back while a thread of {library} still used it",
            (
                f"nothing is mapped at {fault.address or 0:#x}, where {native_code.place(frame)} was at work",
                "memory map",
            ),
            (f"the thread belongs to {library}: Python does not wait for it", "native stack"),
            written(release, "gives memory back"),
            fixes=(
                safe(
                    "wait until the library is done before the memory is released", f"{release.name} at {release.place}"
                ),
                consider("let the library own what its threads use", "copy it, or hand it over for good"),
            ),
        )
        return replace(found, location=release.location)

    def _damaged_heap(self, case: Case) -> Finding | None:
        """Small blocks stay mapped: who writes to one that was freed damages the allocator's lists."""
        said = case.said(messages.HEAP_OVERFLOW) or case.said(messages.DOUBLE_FREE)
        if not said or used_after_release(case) is None:
            return None
        fact = (f"the allocator found its blocks damaged: {said}", "abort message")
        found = self._outlived(case, POSSIBLE, fact)
        return replace(found, fixes=(*hunt_further(case)[:1], *found.fixes))

    def _outlived(self, case: Case, strength: float, *facts: tuple[str, str]) -> Finding:
        sources, lent, name = sources_of(case.crash), views.lent(case.crash), views.variable(case)
        view = sources.borrowed_view or sources.addressed_view or next(iter(sources.pointers), None)
        release = sources.release or next(iter(reversed(sources.deletions)), None)
        resized = release is not None and release.name == "resize"
        shown = f"`{name}` shows" if name else "an array, a tensor or a pointer shows"
        if release is None and lent is not None:
            title = f"{shown} memory that {lent.owner.name} had returned and that its library freed or moved since"
        else:
            what = f"`del {release.name}`" if release in sources.deletions else release.name if release else ""
            by = f" by {what} at {release.place}" if release and (view or resized) else ""
            title = f"{shown} memory that had been freed{by}: it outlived its owner"
        return self.found(
            case,
            strength,
            title,
            *facts,
            written(view, "gives access to memory without owning it"),
            (f"{lent.owner.place}: the memory belongs to {lent.owner.name}, which is called again", "source")
            if lent and lent.again and release is None
            else None,
            written(release, "gives memory back") if release and (view or resized) else None,
            fixes=_fixes(case, release, lent, name),
        )

    def _strength(self, case: Case, sources: Sources) -> float | None:
        address = case.fault.address if case.fault else None
        view = sources.borrowed_view or sources.addressed_view or next(iter(sources.pointers), None)
        # TensorFlow's own bounds may be wrong when it computes; when it converts it only copies.
        computing = case.owner == "tensorflow" and not case.calls(r"NewTensor|NdarrayToTensor|ConvertToEagerTensor")
        past_end = address is not None and accesses.ran_off(case.crash, address)
        if case.fault is not None and accesses.started_inside(case.crash, case.fault):
            return None  # the memory is there: the access led out of it
        if resizes(sources):
            return STRONG
        if view is None and sources.raw_access and sources.release:
            return LIKELY + 0.1
        if view is None:
            # It may be made in a file that is not on the stack: code that only copies for Python is suspicious.
            return None if computing or past_end else WEAK if case.custom_libraries else POSSIBLE
        if sources.released_by_thread:
            return POSSIBLE
        if sources.release and sources.strided_view is None:
            return STRONG
        if sources.mapped_file or sources.strided_view or past_end:
            return POSSIBLE if sources.deletions else WEAK
        if (lent := views.lent(case.crash)) and lent.again:
            return LIKELY + 0.1
        return LIKELY if sources.deletions or not computing else LIKELY - 0.1


def resizes(sources: Sources) -> bool:
    """An array is resized although others still show its memory: NumPy refuses unless it is told not to look."""
    return any(use.name == "resize" and "refcheck" in use.keywords for use in sources.calls)


def _fixes(case: Case, release: Use | None, lent: Lent | None, name: str | None) -> tuple[Fix, ...]:
    view = name or "view"
    if release is not None and release.name == "resize":
        return (
            safe(
                "leave refcheck on: NumPy then refuses to resize memory that others show",
                f"without refcheck=False at {release.place}",
            ),
            consider("make a new array instead of resizing", "np.resize(a, n), or a[:n].copy()"),
        )
    tensor = f", or tf.constant(np.array({view}))" if loads_tensorflow(case.crash) else ""
    if release is None and lent is not None:
        return (
            safe(
                f"copy what {lent.owner.name} returns before it is called again",
                f"{lent.view.name}(…).copy() at {lent.view.place}",
            ),
            consider("let the caller own the memory", f"hand {lent.owner.name} a buffer that Python allocated"),
        )
    after = f"{release.name} at {release.place} " if release else "the release "
    return (
        safe("copy the data before its memory is released", f"np.array({view}){tensor}"),
        consider("keep the owner alive as long as the view", f"{after}comes after the last use of {view}"),
    )
