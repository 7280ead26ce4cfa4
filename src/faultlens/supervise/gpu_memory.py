"""How much memory of NVIDIA's GPUs does the program have? Asked of the driver's library (NVML) while it runs.

In a thread of its own: a driver that hangs holds whoever asks it. Called without nvidia-ml-py, whose import takes five
times as long as all the rest, and as much memory again. In a container the driver may not know the processes by the
numbers that they have there: then nothing is told."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator

from faultlens.inspection import process

DEVICE = "/dev/nvidiactl"
LIBRARY = "libnvidia-ml.so.1"
PATIENCE_S = 1.0  # programs that end sooner do not pay for it
MOST_PROCESSES = 1024
DEEPEST = 32  # processes below processes
UNKNOWN = (1 << 64) - 1


class Process(ctypes.Structure):
    """nvmlProcessInfo_t, as versions 2 and 3 of the call have it."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


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
            driver = Driver()
            while self._wanted.wait():
                self._wanted.clear()
                self._found = used(((each.pid, each.used) for each in driver.processes()), self._pid)
        except (OSError, AttributeError):  # no library, an old one, a GPU that is lost: the timeline goes on without
            return


class Driver:
    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        count = ctypes.c_uint()
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self._gpus = [ctypes.c_void_p() for _ in range(count.value)]
        for number, gpu in enumerate(self._gpus):
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(gpu))
        self._room = (Process * MOST_PROCESSES)()

    def processes(self) -> Iterator[Process]:
        """All that compute, on every GPU."""
        for gpu in self._gpus:
            count = ctypes.c_uint(MOST_PROCESSES)
            self._call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, ctypes.byref(count), self._room)
            yield from self._room[: count.value]

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise OSError(f"{name}: error {status} of NVML")


def used(found: Iterator[tuple[int, int]], root: int) -> int | None:
    """Bytes of `root` and all processes below it, of what the driver says; None where it does not say."""
    sizes = [size for pid, size in found if size != UNKNOWN and _is_below(pid, root)]
    return sum(sizes) if sizes else None


def _is_below(pid: int, root: int) -> bool:
    above: int | None = pid
    for _ in range(DEEPEST):
        if above == root:
            return True
        above = process.parent_pid(above) if above else None
    return False
