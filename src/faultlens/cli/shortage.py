"""What the machine has no more of, in words: open files, processes, memory."""

from __future__ import annotations

import errno
import resource

from faultlens.errors import FaultlensError

_NO_THREAD = "can't start new thread"


def shortage(error: BaseException) -> FaultlensError | None:
    """None: it is not for want of anything that faultlens failed."""
    if isinstance(error, MemoryError):
        return FaultlensError("There is no memory left for faultlens.", "Look at ulimit -v, and at what else runs.")
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return _no_process()
    if not isinstance(error, OSError) or hasattr(error, "characters_written"):  # a full pipe says EAGAIN too
        return None
    if error.errno == errno.EMFILE:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return FaultlensError(f"Too many open files: faultlens may open {limit}.", "Allow more: ulimit -n 1024.")
    if error.errno == errno.ENFILE:
        return FaultlensError("Too many open files on this machine.", "Look at /proc/sys/fs/file-nr.")
    if error.errno == errno.EAGAIN:
        return _no_process()
    if error.errno == errno.ENOMEM:
        return FaultlensError("There is no memory left for faultlens.", "Look at ulimit -v, and at what else runs.")
    return None


def _no_process() -> FaultlensError:
    return FaultlensError(
        "No further process or thread can be started.", "Allow more: ulimit -u, or pids.max of the control group."
    )
