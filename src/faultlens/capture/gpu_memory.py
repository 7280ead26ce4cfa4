"""How much memory of NVIDIA's GPUs does the program have? Asked of the driver while it runs.

In a thread of its own: a driver that hangs holds whoever asks it. In a container the driver may not know the processes
by the numbers they have there: then nothing is told."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from faultlens.capture import process

DEVICE = "/dev/nvidiactl"
PATIENCE_S = 1.0  # programs that end sooner do not pay for it
DEEPEST = 32  # processes below processes


def gpu_memory_of(pid: int) -> Callable[[], int | None]:
    """For a timeline. Costs nothing where there is no such GPU."""
    return GpuMemory(pid).last if os.path.exists(DEVICE) else lambda: None


class GpuMemory:
    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._begin = time.monotonic() + PATIENCE_S
        self._thread: threading.Thread | None = None
        self._wanted = threading.Event()
        self._found: int | None = None

    def last(self) -> int | None:
        """What was found after the last call, if it was by now; and has it found again."""
        found, self._found = self._found, None
        if self._thread is None and time.monotonic() >= self._begin:
            self._thread = threading.Thread(target=self._serve, name="gpu-memory", daemon=True)
            self._thread.start()
        self._wanted.set()
        return found

    def _serve(self) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            gpus = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
            while self._wanted.wait():
                self._wanted.clear()
                found = [one for gpu in gpus for one in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)]
                self._found = used(found, self._pid)
        except Exception:  # no library, no driver, a GPU that is lost: the timeline goes on without it
            return


def used(found: list[Any], root: int) -> int | None:
    """Bytes of `root` and all processes below it, of what the driver says; None where it does not say."""
    sizes = [one.usedGpuMemory for one in found if _is_below(one.pid, root) and one.usedGpuMemory is not None]
    return sum(sizes) if sizes else None


def _is_below(pid: int, root: int) -> bool:
    above: int | None = pid
    for _ in range(DEEPEST):
        if above == root:
            return True
        above = process.parent_pid(above) if above else None
    return False
