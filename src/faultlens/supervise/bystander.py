"""Tells signals that were sent to faultlens alone from those that were sent to everybody.

`kill PID` of a scheduler means the program and has to be handed on. `kill %1` of a shell, and a service manager that
ends a whole control group, reach the program by themselves; handed on, they would reach it twice. siginfo does not say
which it was. So another process of ours stands by, in the same process group and control group, with every signal
blocked: what reaches it was meant for all."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from faultlens.system import own_process

SENT_TO_ALL_S = 0.005  # from the first process of a group to the last
ANSWER_S = 0.2
MEMORY_S = 1.0
NAME = b"bystander"
ARG_START = 45  # of /proc/PID/stat, behind the name of the program: where its arguments lie


class Sent(NamedTuple):
    number: int
    sender: int  # process id


class Bystander:
    """None of its methods fail: without an answer a signal counts as sent to faultlens alone."""

    def __init__(self) -> None:
        """To be made after the program was started, with all signals blocked."""
        self._seen: dict[Sent, float] = {}  # and not asked for yet, with the time
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_S)
        self.pid = os.fork()
        if self.pid == 0:
            _stand_by(theirs)
        theirs.close()

    def has_seen(self, sent: Sent) -> bool:
        """Was this signal sent to all? Asked once for each."""
        time.sleep(SENT_TO_ALL_S)
        now = time.monotonic()
        self._seen = {each: when for each, when in self._seen.items() if now - when < MEMORY_S}
        with contextlib.suppress(OSError, ValueError):
            self._socket.send(b"?")
            words = iter(self._socket.recv(1 << 16).split())
            self._seen.update(
                (Sent(int(number), int(sender)), now) for number, sender in zip(words, words, strict=False)
            )
        return self._seen.pop(sent, None) is not None

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """If memory runs out meanwhile, the kernel takes this and not the program."""
        score = Path(f"/proc/{self.pid}/oom_score_adj")
        before = "0"
        with contextlib.suppress(OSError):
            before = score.read_text()
            score.write_text("1000")
        yield
        with contextlib.suppress(OSError):
            score.write_text(before)

    def end(self) -> None:
        self._socket.close()
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _stand_by(channel: socket.socket) -> None:
    """Never returns. Holds nothing of the program's: a pipe that it kept open would never end."""
    try:
        own_process.die_with_parent()
        _take_another_name()
        end = os.sysconf("SC_OPEN_MAX")
        os.closerange(0, channel.fileno())
        os.closerange(channel.fileno() + 1, end if end > 0 else 4096)
        while channel.recv(1):
            channel.send(b" ".join(b"%d %d" % sent for sent in _pending()) or b" ")
    finally:
        os._exit(0)


def _take_another_name() -> None:
    """`pkill -f 'faultlens run'` means faultlens, not this."""
    own_process.named(NAME)
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_START + 1])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, NAME, min(len(NAME), end - start))


def _pending() -> list[Sent]:
    found = []
    while info := signal.sigtimedwait(signal.valid_signals(), 0):
        found.append(Sent(info.si_signo, info.si_pid))
    return found
