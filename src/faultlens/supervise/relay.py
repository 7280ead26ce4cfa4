"""Hands signals on to the program that were sent to faultlens and meant for it."""

from __future__ import annotations

import contextlib
import os
import signal
from contextlib import AbstractContextManager

from faultlens.inspection.siginfo import signal_name
from faultlens.supervise.bystander import Bystander, Sent

SI_KERNEL = 0x80  # of the terminal's: they reach the whole process group, and so the program, by themselves
HANGUP = {signal.SIGHUP, signal.SIGCONT}  # but for these, of which only the leader of the session is told


class SignalRelay:
    def __init__(self, pid: int) -> None:
        """To be made after the program was started, and before any thread: the bystander is forked."""
        self.handed_on: list[str] = []  # "SIGTERM from process 7"
        self._pid = pid
        self._bystander: Bystander | None = None
        with contextlib.suppress(OSError):
            self._bystander = Bystander()

    def hand_on(self, info: signal.struct_siginfo) -> None:
        if info.si_code == SI_KERNEL and info.si_signo not in HANGUP:
            return
        sent = Sent(info.si_signo, info.si_pid)
        if self._bystander is not None and self._bystander.has_seen(sent):
            return
        if sent.number != signal.SIGCONT:
            self.handed_on.append(f"{signal_name(sent.number)} from process {sent.sender}")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._pid, sent.number)

    def expendable(self) -> AbstractContextManager[None]:
        """If memory runs out meanwhile, the kernel takes the bystander and not the program."""
        return self._bystander.offered() if self._bystander else contextlib.nullcontext()

    def end(self) -> None:
        if self._bystander is not None:
            self._bystander.end()
