from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence import views
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.loader import allocators, short
from faultlens.diagnosis.evidence.messages import INVALID_FREE, line_saying
from faultlens.diagnosis.evidence.sources import Use
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.text.safe import one_line

# Other allocators than glibc's, when they are handed memory which is not theirs.
_ENDINGS = ("SIGABRT", "SIGTRAP", "SIGSEGV", "SIGILL")  # how allocators give up
_FOREIGN = re.compile(
    r"Attempt to free invalid pointer|mimalloc: (?:error|warning): [^\n]*(?:free|pointer)|alloc-dealloc-mismatch"
    r"|<jemalloc>: [^\n]*(?:invalid|size mismatch|not allocated)|Scudo ERROR: [^\n]*(?:dealloc|invalid chunk)"
)
_FREES = re.compile(
    r"(?:^|::|_)(?:free|cfree|realloc|operator delete|je_\w*free|tc_free|tc_delete|mi_free|do_free\w*|InvalidFree)\b"
)


class AllocatorMismatch(Cause):
    """
    ## What it is
    Memory must be given back to the allocator it came from. Here it came from one (glibc's malloc, the private copy
    of a statically linked library, Python's, C++'s `new`) and was freed by another (tcmalloc, jemalloc, mimalloc
    loaded by `LD_PRELOAD`; `free` called through ctypes on memory that malloc never gave out).

    ## How it looks
    SIGABRT with "Attempt to free invalid pointer" (tcmalloc), "free(): invalid pointer" (glibc) or SIGSEGV inside of
    the allocator.

    ## How to prove it
    Two allocators in `/proc/PID/maps`, and the frames of `free`: the pointer it was given lies in memory of the other
    one. Without the preloaded allocator it works.

    ## How to fix it
    Let the library that allocates also free: export a `free_buffer` function from it and call that. Or take the
    allocator out of `LD_PRELOAD`.
    """

    slug = "allocator-mismatch"
    code = "FL408"
    headline = "Memory from one allocator was freed by another"

    def examine(self, case: Case) -> Finding | None:
        if not case.is_native_crash:
            return None
        others = allocators(case.crash)
        foreign = (
            line_saying(case.crash, _FOREIGN) if case.signal in ("SIGABRT", "SIGTRAP", "SIGSEGV", "SIGILL") else None
        )
        invalid = case.said(INVALID_FREE) if case.signal == "SIGABRT" else None
        inside = _inside(case, others)
        if not foreign and not inside and not (invalid and (others or _freed_by_hand(case))):
            return None
        copied = views.freed_copy(case.crash) if _freed_by_hand(case) else None
        if copied is not None:
            return _freed_copy(case, invalid or foreign or "", *copied)
        names = " and ".join(dict.fromkeys(short(path) for path in others)) or "glibc"
        return Finding(
            strength=_strength(foreign, invalid, bool(others) or _freed_by_hand(case)),
            title=f"memory was freed through {names} that came from another allocator",
            evidence=evidence(
                (one_line(foreign or invalid or "", 200), "stderr") if foreign or invalid else None,
                (f"{names} is loaded besides glibc's allocator", "/proc/PID/maps") if others else None,
                (f"died in {short(inside)}", "native stack") if inside else None,
                ("free() was called from Python, through ctypes", "native stack") if _freed_by_hand(case) else None,
                *case.fault_evidence[:1],
            ),
            fixes=(
                consider(
                    "free memory with the library that allocated it", "export a free function beside the allocating one"
                ),
                safe(f"run it without {names}", "take it out of LD_PRELOAD")
                if others
                else consider(
                    "free only what malloc of the same library returned", "not memory of NumPy, Python or C++"
                ),
            ),
        )


def _freed_copy(case: Case, said: str, free: Use, made: Use) -> Finding:
    return Finding(
        strength=STRONG,
        title=f"{free.name} at {free.place} was given a bytes object of Python's, not what {made.name} had returned",
        evidence=evidence(
            (one_line(said, 200), "stderr"),
            (f"the result of {made.name} is declared as c_char_p: ctypes makes a bytes object of it", "source"),
            *case.fault_evidence[:1],
        ),
        fixes=(
            safe(
                f"declare {made.name}.restype = ctypes.c_void_p, and free that",
                f"pointer = {made.name}(…); text = ctypes.string_at(pointer); {free.name}(pointer)",
            ),
        ),
    )


def _inside(case: Case, others: tuple[str, ...]) -> str | None:
    """Another allocator died while freeing."""
    frames = case.native_stack[:3]
    died = next((frame.library for frame in frames if frame.library in others), None)
    named = any(_FREES.search(frame.function) for frame in case.native_stack[:5])
    return died if died and (named or case.mentions(Wording.FREES)) else None


def _freed_by_hand(case: Case) -> bool:
    """ctypes called free() itself: nothing but libc lies above it."""
    for frame in case.native_stack:
        if "/libffi" in (frame.library or ""):
            return case.culprit is None or "_ctypes" in (case.culprit.library or "")
    return False


def _strength(foreign: str | None, invalid: str | None, others: bool) -> float:
    if foreign:
        return PROVEN if others else STRONG
    if invalid:
        return STRONG if others else POSSIBLE
    return POSSIBLE + 0.1
