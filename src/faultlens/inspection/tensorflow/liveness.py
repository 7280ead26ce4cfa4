"""Whether what was found on a stack belongs to a call that is under way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from faultlens.inspection.owners import is_runtime, owner_of
from faultlens.inspection.tensorflow.cpp import class_name
from faultlens.inspection.tensorflow.live_stack import LiveStack
from faultlens.records.crash import Frame

_KERNEL_CODE = re.compile(r"Compute|OpKernel|Op(?:<|::)")
# "tensorflow::ThreadPoolDevice::Compute(…)", "XOp<float>::ComputeAsync(…)", "HybridAsyncOpKernel::DoCompute(…)"
_COMPUTES = re.compile(r"::(?:Do)?Compute(?:Async)?\(")
_CONSTRUCTS = "OpKernelConstruction"  # is an argument of constructors and of what calls them
_CALLS_BETWEEN = 3
_ROOTS = frozenset({b"N10tensorflow8OpKernelE", b"N10tensorflow13AsyncOpKernelE"})


def may_work(frames: Sequence[Frame]) -> bool:
    """Whether a thread can be at work on a kernel at all; most wait for something to do, which is told quickly."""
    return any(frame.kind == "native" and _KERNEL_CODE.search(frame.function) for frame in frames)


def is_computing(stack: LiveStack, context: int, classes: Sequence[bytes], library: str | None) -> bool:
    """A context on this stack must lie in the part of the call that computes the kernel; for one elsewhere (of ops
    that end on another thread than they began on) code of the kernel must be running here.

    `library`: where the kernel's code is."""
    if not stack.is_unwound and not _begins_in(stack, library):
        return False
    if not stack.holds(context):
        return runs_code_of(classes, (call.frame for call in stack.calls))
    inner = stack.calls_inside(context)
    return bool(inner) and (
        bool(_COMPUTES.search(inner[-1].frame.function)) or runs_code_of(classes, (call.frame for call in inner))
    )


def is_constructing(stack: LiveStack, construction: int) -> bool:
    """It lies in the part of the call that makes the kernel."""
    inner = stack.calls_inside(construction) if stack.holds(construction) else ()
    making = next((call.frame for call in inner[-_CALLS_BETWEEN:] if _CONSTRUCTS in call.frame.function), None)
    return making is not None and (stack.is_unwound or _begins_in(stack, making.library))


def _begins_in(stack: LiveStack, library: str | None) -> bool:
    """Frames that are only guessed from words that look like return addresses may be old; the innermost is not."""
    frames = (call.frame for call in stack.calls)
    first = next((frame for frame in frames if frame.library and not is_runtime(frame.library)), None)
    return first is not None and (first.library == library or owner_of(first) == "tensorflow")


def runs_code_of(classes: Iterable[bytes], frames: Iterable[Frame]) -> bool:
    patterns = [methods_of(class_name(mangled)) for mangled in classes if mangled not in _ROOTS]
    return any(pattern.search(frame.function) for frame in frames for pattern in patterns)


@cache
def methods_of(name: str) -> re.Pattern[str]:
    """Methods of a class and functions inside of them, whatever its template arguments: "XOp<…>::Compute(…)"."""
    return re.compile(rf"(?<!\w){re.escape(plain_name(name))}(?:<.*>)?::")


def plain_name(name: str) -> str:
    """Without namespaces and template arguments: "BlockLSTMOp"."""
    depth = 0
    for index in range(len(name) - 1, -1, -1):
        depth += (name[index] == ">") - (name[index] == "<")
        if depth == 0 and name[index] == ":":
            name = name[index + 1 :]
            break
    return name.partition("<")[0]
