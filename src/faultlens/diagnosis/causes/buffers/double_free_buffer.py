"""Was a buffer freed twice from Python?"""

from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Finding, consider, safe
from faultlens.diagnosis.causes.buffers.base import BufferCause, by_fence, written
from faultlens.diagnosis.evidence import fenced, foreign_calls, messages, native_code, views
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, sources_of
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import FencedBlock
from faultlens.records.diagnosis import Fix


class DoubleFreeBuffer(BufferCause):
    """
    ## What it is
    Two owners free the same memory: Python calls `free` (or a library's release function) twice, or frees what
    NumPy, TensorFlow or another object frees as well.

    ## How it looks
    SIGABRT with `double free or corruption` or `free(): double free detected in tcache 2`; SIGSEGV inside free for
    large buffers. Often at exit or in a destructor.

    ## How to prove it
    The stack shows free called from ctypes, or from the array's own destructor, and the sources free the same
    pointer elsewhere.

    ## How to fix it
    One owner: set the pointer to None after the release and check it, use `weakref.finalize` instead of `__del__`
    plus `close()`, never free memory that an array owns.
    """

    slug = "double-free-buffer"
    code = "FL705"
    headline = "a buffer was freed twice"

    def examine(self, case: Case) -> Finding | None:
        heap = native_code.in_heap_code(case)
        if case.block is not None:
            return self._by_fence(case, case.block)
        said = case.said(messages.DOUBLE_FREE) or case.said(messages.INVALID_FREE) if case.signal == "SIGABRT" else None
        if heap is None or "free" not in heap.function or not (said or case.signal == "SIGSEGV"):
            return None
        strength = self._strength(case)
        if strength is None:
            return None
        if said and not case.said(messages.DOUBLE_FREE) and len(sources_of(case.crash).frees) < 2:
            strength = min(strength, POSSIBLE)  # said of pointers that malloc never gave out
        fact = (f"glibc found it: {said}", "abort message")
        return self._freed(case, strength, fact if said else ("free itself died on the pointer", "native stack"))

    def _by_fence(self, case: Case, block: FencedBlock) -> Finding | None:
        if block.misuse not in ("double free", "invalid free"):
            return None
        now, before = fenced.asked_by_python(case.native_stack), fenced.asked_by_python(block.freed)
        alone = native_code.suspect(case) is not None and not (now and (before or block.misuse == "invalid free"))
        if alone or not (now or before):
            return None  # native code by itself
        return by_fence(self._freed(case, PROVEN), block)

    def _freed(self, case: Case, strength: float, *facts: tuple[str, str]) -> Finding:
        if (of_array := views.freed_array(case.crash)) and (
            native_code.dies(case, r"^array_dealloc") or entry_frees(case)
        ):
            return self._of_array(case, *of_array, *facts)
        return self.found(
            case,
            strength,
            "Python freed memory that had been freed before, or that somebody else owns",
            *facts,
            ("free was called from Python, through ctypes", "native stack") if foreign_calls.called(case) else None,
            *(written(use, "frees memory") for use in sources_of(case.crash).frees[-2:]),
            fixes=(
                _once(case),
                consider("leave the release to one owner", "weakref.finalize instead of __del__ and close()"),
            ),
        )

    def _of_array(self, case: Case, free: Use, name: str, *facts: tuple[str, str]) -> Finding:
        """NumPy frees what it allocated, when the array dies: nobody else may."""
        again = native_code.dies(case, r"^array_dealloc") is not None
        then = ", and NumPy freed it again when the array died" if again else ""
        return self.found(
            case,
            STRONG,
            f"{free.name} at {free.place} freed the memory of the array `{name}`, which NumPy owns{then}",
            *facts,
            ("NumPy's array_dealloc called free", "native stack") if again else None,
            (f"{free.place}: {free.name} is given the address of `{name}`", "source"),
            fixes=(
                safe(f"do not free the memory of `{name}`: take {free.name} at {free.place} out", "`del` is enough"),
                consider("let one side own the memory", "malloc and free by hand, or an array, not both"),
            ),
        )

    def _strength(self, case: Case) -> float | None:
        custom, entry = native_code.suspect(case), foreign_calls.called(case)
        frees = sources_of(case.crash).frees
        if entry is not None and foreign_calls.died_in_it(case):
            if owner_of(entry) == "system":
                return STRONG
            releases = any(use.name == entry.function for use in frees)
            return LIKELY + 0.07 if releases else POSSIBLE - 0.1
        if custom is not None or not frees:
            return None
        return LIKELY + 0.1 if not case.custom_libraries else LIKELY


def entry_frees(case: Case) -> bool:
    """Python itself called free, through ctypes."""
    entry = foreign_calls.called(case)
    return entry is not None and owner_of(entry) == "system" and foreign_calls.died_in_it(case)


def _once(case: Case) -> Fix:
    """Where two functions free, one of them is too many; where there is one, it is called again."""
    uses = {use.name: use for use in sources_of(case.crash).frees}
    if len(uses) > 1:
        first, second = list(uses.values())[-2:]
        return safe(
            "leave the memory to one of the two that free it",
            f"{first.name} at {first.place}, {second.name} at {second.place}: what a library keeps, only it may free",
        )
    name = views.variable(case)
    forget = f"{name} = None after it, `if {name} is not None` before it" if name else ""
    return safe("free once: set the pointer to None after the release, and check it before", forget)
