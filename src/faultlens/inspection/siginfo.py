"""What the kernel said about a signal: the 128 bytes of siginfo_t, with the names of the manual."""

from __future__ import annotations

import signal
import struct
from typing import NamedTuple

SIGINFO_SIZE = 128

SI_USER = 0
SI_KERNEL = 0x80
SI_QUEUE = -1
SI_TKILL = -6
SEGV_MAPERR, SEGV_ACCERR = 1, 2
BUS_ADRALN, BUS_ADRERR = 1, 2
FPE_INTDIV = 1
ILL_ILLOPN = 2

_GENERIC_CODES = {
    SI_USER: "SI_USER",
    SI_KERNEL: "SI_KERNEL",
    SI_QUEUE: "SI_QUEUE",
    -2: "SI_TIMER",
    -3: "SI_MESGQ",
    -4: "SI_ASYNCIO",
    -5: "SI_SIGIO",
    SI_TKILL: "SI_TKILL",
    -7: "SI_DETHREAD",
    -60: "SI_ASYNCNL",
}

# Codes the kernel gives when the program itself did something; counted from 1.
_CODES = {
    signal.SIGSEGV: (
        *("SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR", "SEGV_ACCADI"),
        *("SEGV_ADIDERR", "SEGV_ADIPERR", "SEGV_MTEAERR", "SEGV_MTESERR", "SEGV_CPERR"),
    ),
    signal.SIGBUS: ("BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"),
    signal.SIGFPE: (
        *("FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES"),
        *("FPE_FLTINV", "FPE_FLTSUB"),
    ),
    signal.SIGILL: (
        *("ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG"),
        *("ILL_COPROC", "ILL_BADSTK", "ILL_BADIADDR"),
    ),
    signal.SIGTRAP: ("TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"),
    signal.SIGSYS: ("SYS_SECCOMP", "SYS_USER_DISPATCH"),
    signal.SIGCHLD: (*("CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"),),
    signal.SIGIO: ("POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP"),
}
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP})
_SENT = frozenset({SI_USER, SI_QUEUE, SI_TKILL})

# si_signo, si_errno, si_code, padding, then a union: si_addr, or si_pid and si_uid
_HEAD = struct.Struct("<iiii")
_ADDRESS = struct.Struct("<Q")
_SENDER = struct.Struct("<iI")


class SignalInfo(NamedTuple):
    number: int
    code: int
    address: int | None = None
    sender_pid: int | None = None
    sender_uid: int | None = None

    @property
    def name(self) -> str:
        return signal_name(self.number)

    @property
    def code_name(self) -> str:
        return code_name(self.number, self.code)

    @property
    def is_fault(self) -> bool:
        """The thread's own instruction caused it; nobody sent it."""
        return self.number in _FAULTS and self.code > 0


def parse(data: bytes) -> SignalInfo:
    """The facts in a siginfo_t; missing bytes at its end count as zero."""
    data = data.ljust(SIGINFO_SIZE, b"\0")
    number, _, code, _ = _HEAD.unpack_from(data)
    info = SignalInfo(number, code)
    if info.is_fault and code != SI_KERNEL:
        return info._replace(address=_ADDRESS.unpack_from(data, _HEAD.size)[0])
    if code in _SENT:
        pid, uid = _SENDER.unpack_from(data, _HEAD.size)
        return info._replace(sender_pid=pid, sender_uid=uid)
    return info


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        if signal.SIGRTMIN < number < signal.SIGRTMAX:
            return f"SIGRTMIN+{number - signal.SIGRTMIN}"
        return f"signal {number}"


def code_name(number: int, code: int) -> str:
    names = _CODES.get(number, ())  # type: ignore[call-overload]
    if 0 < code <= len(names):
        return str(names[code - 1])
    return _GENERIC_CODES.get(code, f"si_code {code}")
