"""How a process ended that is not our child."""

from __future__ import annotations

import contextlib
import fcntl
import struct
from pathlib import Path

PIDFD_GET_INFO = 0xC040FF0B  # _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info), Linux 6.13
PIDFD_INFO_EXIT = 1 << 3
_PIDFD_INFO = struct.Struct("<Q52xi")  # mask, exit_code
_EXIT_CODE = 49  # the field of /proc/PID/stat, counted from behind the name


def wait_status(pid: int, pidfd: int) -> int | None:
    """Of a process that has ended; None if it cannot be known any more. First the parent must not have taken note of
    it, then it must."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[_EXIT_CODE])
    with contextlib.suppress(OSError):
        answer = bytearray(_PIDFD_INFO.pack(PIDFD_INFO_EXIT, 0))
        fcntl.ioctl(pidfd, PIDFD_GET_INFO, answer)
        mask, code = _PIDFD_INFO.unpack(answer)
        return code if mask & PIDFD_INFO_EXIT else None
    return None
