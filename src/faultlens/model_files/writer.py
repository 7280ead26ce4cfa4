"""Who is at work on an unfinished save, and whether that can still be.

A lock tells it on one machine. On a folder that several machines share, locks may hold on each of them alone (NFS with
`local_lock`, Lustre with `localflock`), so the name of an unfinished save also tells who writes it."""

from __future__ import annotations

import math
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from faultlens.model_files.generations import UNFINISHED

GIVEN_UP = 24 * 3600.0  # seconds after its last change: what another machine wrote is a leftover
_NAMELESS = ("", "localhost", "localhost.localdomain")


@dataclass(frozen=True)
class Writer:
    """One process of one machine."""

    host: str
    boot: str  # tells machines apart that bear one name, and one machine before and after a restart
    namespace: str  # in which the pid counts
    pid: int
    started: str  # tells processes apart that bore one pid

    @staticmethod
    def own() -> Writer:
        return Writer(socket.gethostname(), _boot(), _namespace(), os.getpid(), _started(os.getpid()))

    @staticmethod
    def of(entry: Path) -> Writer | None:
        """None where the name does not tell."""
        parts = entry.name.removeprefix(UNFINISHED).rsplit("@", 5)
        if len(parts) != 6 or not (parts[3].isascii() and parts[3].isdigit()):
            return None
        return Writer(parts[0], parts[1], parts[2], int(parts[3]), parts[4])

    def new_name(self) -> str:
        parts = (self.host, self.boot, self.namespace, str(self.pid), self.started, str(time.monotonic_ns()))
        return UNFINISHED + "@".join(parts)

    @property
    def is_gone(self) -> bool:
        """Surely: one of the processes that can be told from here, and not there any more."""
        if (self.boot, self.namespace) != (_boot(), _namespace()):
            return False
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass  # another user's
        except (ProcessLookupError, OverflowError):
            return True
        return _started(self.pid) not in (self.started, "")

    @property
    def is_near(self) -> bool:
        """On this machine, now or before a restart: our lock holds for it as well."""
        same_name = self.host == socket.gethostname() and self.host not in _NAMELESS
        return same_name or self.boot == _boot() != ""


def is_leftover(entry: Path, locked: bool, now: float) -> bool:
    """Whether nobody writes it any more. `locked`: we hold the lock; `now` is told by the clock of the file system."""
    writer = Writer.of(entry)
    if writer is not None and (writer.is_gone or (locked and writer.is_near)):
        return True
    return now - _last_change(entry) > GIVEN_UP


def _last_change(entry: Path) -> float:
    try:
        times = [entry.lstat().st_mtime]
        for folder, _, names in os.walk(entry):
            times += [Path(folder, name).lstat().st_mtime for name in names]
    except FileNotFoundError:
        return math.inf  # somebody is at work
    return max(times)


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


def _started(pid: int) -> str:
    """In clock ticks after the start of the machine; empty for a process that cannot be looked at."""
    try:
        return Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""
