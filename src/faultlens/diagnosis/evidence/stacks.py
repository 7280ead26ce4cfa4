"""How large the stack of the crashed thread is."""

from __future__ import annotations

from faultlens.diagnosis.evidence.addresses import stack_size
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import is_main

USUAL = 8 << 20
SMALL = 1 << 20  # TensorFlow and Python run out of less without any recursion that deserves the name


def stack_bytes(case: Case) -> int | None:
    """Of the mapping; it may look larger than the stack where the kernel has merged it with a neighbour."""
    return stack_size(case.crash, case.fault) if case.fault else None


def has_small_stack(case: Case) -> bool:
    """A thread other than the main one, with much less stack than usual."""
    thread = case.crash.crashed_thread
    on_main = is_main(thread, case.crash) if thread else case.fault is not None and case.fault.thread == case.crash.pid
    if on_main:
        return False
    size = stack_bytes(case)
    if size is not None and size < SMALL:
        return True
    return (size is None or size < USUAL // 2) and case.mentions(Wording.SETS_STACK_SIZE) is not None
