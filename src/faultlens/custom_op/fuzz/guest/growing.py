"""Does an op keep memory, descriptors or threads from call to call? Runs in the Python of the user's programs, from
3.9 on.

The same call again and again, in windows of equal length: what is kept grows in most of them, what is made once does
not."""

from __future__ import annotations

import ctypes
import gc
import os
import time
from typing import Any, Callable

import tensorflow as tf

from . import tensors
from .windows import LEAST_PER_CALL, is_growth

COUNTED = (("leaks-files", "descriptors"), ("leaks-threads", "threads"))
FEW_CALLS = 8
WINDOWS = 5
MOST_CALLS, LEAST_CALLS = 2000, 60  # of a window
SECONDS = 0.15  # of a window
LEAST_PER_REFUSAL = 3000.0  # TensorFlow itself keeps some hundred bytes of each error
SLOW = 0.02  # seconds of a call: too few would fit


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd _1 _2 uordblks _3 _4".split()]


def in_use() -> int:
    """Bytes that malloc has given out; without mallinfo2 (glibc before 2.33), those of the process's own."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallinfo2"):
        libc.mallinfo2.restype = Mallinfo2
        info = libc.mallinfo2()
        return int(info.uordblks + info.hblkhd)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growing(call: Any) -> dict[str, Any]:
    least = LEAST_PER_CALL

    def window(calls: int) -> None:
        for _ in range(calls):
            try:
                call.function(**call.arguments, **call.settings)
            except tf.errors.OpError:  # what is refused must not keep anything either
                nonlocal least
                least = LEAST_PER_REFUSAL

    tensors.perturb(0)
    tensors.fence_every(0, 0)  # it would not be counted
    window(1)
    start = time.monotonic()
    window(1)
    told: dict[str, Any] = {"ok": [], "problems": [], "calls": 0}
    if time.monotonic() - start > SLOW:
        return told
    told["problems"] += used_up(window)
    if told["problems"]:
        return told
    start = time.monotonic()
    window(LEAST_CALLS)
    each = (time.monotonic() - start) / LEAST_CALLS
    calls = max(min(int(SECONDS / max(each, 1e-6)), MOST_CALLS), LEAST_CALLS)
    window(calls)
    seen = [state()]
    for _ in range(WINDOWS):
        window(calls)
        seen.append(state())
    told["calls"] = calls * WINDOWS
    for number, (rule, what) in enumerate((("leak", "bytes"), *COUNTED)):
        grown = [after[number] - before[number] for before, after in zip(seen, seen[1:])]  # noqa: RUF007 (Python 3.9)
        if is_growth(grown, calls, number > 0, least):
            per_call = (seen[-1][number] - seen[0][number]) / (calls * WINDOWS)
            told["problems"].append([rule, f"{per_call:.3g} {what} more with every call, over {calls * WINDOWS} calls"])
    return told


def used_up(window: Callable[[int], None]) -> list[list[str]]:
    """Files and threads of which every call keeps one: there are not enough of them for many calls."""
    seen = [state()]
    for _ in range(2):
        window(FEW_CALLS)
        seen.append(state())
    problems = []
    for number, (rule, what) in enumerate(COUNTED, 1):
        grown = [after[number] - before[number] for before, after in zip(seen, seen[1:])]  # noqa: RUF007 (Python 3.9)
        if min(grown) >= FEW_CALLS:
            problems.append([rule, f"{sum(grown) / (2 * FEW_CALLS):.3g} {what} more with every call"])
    return problems


def state() -> tuple[int, int, int]:
    gc.collect()  # exceptions go round in circles
    return in_use(), len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
