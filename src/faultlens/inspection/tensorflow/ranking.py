"""Which of the ops in flight the crash is about: at most one, and none where it cannot be told."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from faultlens.inspection.tensorflow.liveness import methods_of
from faultlens.inspection.waiting import waits_for
from faultlens.knowledge.carriers import is_carrier
from faultlens.records.crash import Fault, Frame, Kernel, Thread

# By class, where the name of the op is that of a function of the program's.
_CARRIER_CLASS = re.compile(r"::(?:CallOp|PartitionedCallOp|XlaLocalLaunch\w*|XlaLaunch\w*|XlaCompileOnDemandOp)$")

_WAITS_FOR_HELPERS = "work on other threads"
_SENT = frozenset({"SI_USER", "SI_QUEUE"})


def rank(
    kernels: Sequence[Kernel], threads: Sequence[Thread], fault: Fault | None, helped: Sequence[Kernel] = ()
) -> tuple[Kernel, ...]:
    """The one at fault first, then those of the crashed thread, ops that only run others last.

    `kernels` come thread by thread, the innermost of a thread first; `helped` are those among them that the crashed
    thread did a share of the work for.
    """
    crashed = next((thread for thread in threads if thread.crashed), None)
    guilty = _at_fault(kernels, threads, fault, helped)

    def order(kernel: Kernel) -> tuple[bool, bool, bool]:
        return kernel is not guilty, crashed is None or kernel.thread != crashed.id, runs_others(kernel)

    ordered = sorted(kernels, key=order)
    return tuple(replace(kernel, at_fault=True) if kernel is guilty else kernel for kernel in ordered)


def runs_others(kernel: Kernel) -> bool:
    return is_carrier(kernel.op) or bool(_CARRIER_CLASS.search(kernel.kernel_class or ""))


def _at_fault(
    kernels: Sequence[Kernel], threads: Sequence[Thread], fault: Fault | None, helped: Sequence[Kernel]
) -> Kernel | None:
    crashed = next((thread for thread in threads if thread.crashed), None)
    if crashed is None:
        return _hanging(kernels, threads)
    if fault is not None and fault.code in _SENT and all(thread.id != fault.sender_pid for thread in threads):
        return None  # sent from outside: whatever was computed at that moment has not caused it
    innermost = next((kernel for kernel in kernels if kernel.thread == crashed.id), None)
    if innermost is not None:
        return None if runs_others(innermost) else innermost
    named = [kernel for kernel in kernels if _is_named_in(kernel, crashed.frames)]
    return _only([kernel for kernel in named or helped if not runs_others(kernel)])


def _hanging(kernels: Sequence[Kernel], threads: Sequence[Thread]) -> Kernel | None:
    """The only op in flight, if the program waits for it."""
    launching = next((thread for thread in threads if thread.launched), None)
    only = _only([kernel for kernel in kernels if not runs_others(kernel)])
    if launching is None or only is None:
        return None
    return only if only.thread == launching.id or waits_for(launching) == _WAITS_FOR_HELPERS else None


def _is_named_in(kernel: Kernel, frames: Sequence[Frame]) -> bool:
    pattern = methods_of(kernel.kernel_class) if kernel.kernel_class else None
    return pattern is not None and any(pattern.search(frame.function) for frame in frames)


def _only(kernels: Sequence[Kernel]) -> Kernel | None:
    """The first of them, if all are of one node: several threads may compute the same."""
    return kernels[0] if len({(kernel.op, kernel.node) for kernel in kernels}) == 1 else None
