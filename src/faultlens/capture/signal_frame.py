"""The true fault behind a signal that a handler raised again.

faulthandler, and most handlers that print something, end by raising the signal a second time: the kernel then
reports SI_TKILL without an address. The first report is still on the stack, in the frame the kernel built to
call the handler (struct rt_sigframe), with siginfo, registers, trap number and cr2.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterator, Sequence

from faultlens.capture import siginfo
from faultlens.capture.maps import find
from faultlens.capture.memory import Memory
from faultlens.crash import Mapping

MAX_SCAN = 1 << 20

# struct rt_sigframe: pretcode, ucontext (flags, link, stack, sigcontext, sigmask), siginfo
_PRETCODE = struct.Struct("<Q")
_UC_FLAGS = 8
_SIGCONTEXT = 48
_CS = 192
_SIGINFO = 312
_FRAME_SIZE = _SIGINFO + siginfo.SIGINFO_SIZE
_UC_FLAGS_KNOWN = 0x7  # UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS

# struct sigcontext up to cr2; cs, gs, fs and ss are 16 bits each
_REGISTERS = struct.Struct("<18QHHHH4Q")
_NAMES = (
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx"),
    *("rsp", "rip", "eflags", "cs", "gs", "fs", "ss", "err", "trapno", "oldmask", "cr2"),
)
_USER_CS = struct.pack("<HHH", 0x33, 0, 0)  # __USER_CS, then gs and fs

_SIGRETURN = bytes.fromhex("48c7c00f0000000f05")  # mov $15,%rax; syscall
_FATAL = frozenset(
    {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP}
)
_LAST_TRAP = 32


def recover(
    memory: Memory, stack_pointer: int, mappings: Sequence[Mapping]
) -> tuple[bytes, dict[str, int]] | None:
    """siginfo and registers (with trapno, err and cr2) of the fault a handler was called for, if any.

    The innermost fault counts; a frame of a signal that was sent is taken only when there is no fault.
    """
    sent = None
    for info, registers in _frames(memory, stack_pointer, mappings):
        if siginfo.parse(info).is_fault:
            return info, registers
        sent = sent or (info, registers)
    return sent


def _frames(
    memory: Memory, stack_pointer: int, mappings: Sequence[Mapping]
) -> Iterator[tuple[bytes, dict[str, int]]]:
    mapping = find(mappings, stack_pointer)
    if mapping is None:
        return
    # A handler may have been called on an alternate stack, whose frame then ends at the stack's very top.
    stack = memory.read(stack_pointer, min(MAX_SCAN, mapping.end - stack_pointer))
    position = stack.find(_USER_CS)
    while position >= 0:
        start = position - _CS
        # The kernel aligns the frame so that it lies 8 bytes off a multiple of 16, like a called function's.
        if start >= 0 and (stack_pointer + start) % 16 == 8:
            frame = stack[start : start + _FRAME_SIZE]
            if len(frame) == _FRAME_SIZE and _is_signal_frame(frame, memory, mappings):
                registers = dict(zip(_NAMES, _REGISTERS.unpack_from(frame, _SIGCONTEXT), strict=True))
                yield frame[_SIGINFO:], registers
        position = stack.find(_USER_CS, position + 1)


def _is_signal_frame(frame: bytes, memory: Memory, mappings: Sequence[Mapping]) -> bool:
    registers = dict(zip(_NAMES, _REGISTERS.unpack_from(frame, _SIGCONTEXT), strict=True))
    number, errno, code = struct.unpack_from("<iii", frame, _SIGINFO)
    (flags,) = struct.unpack_from("<Q", frame, _UC_FLAGS)
    plausible = (
        number in _FATAL
        and errno == 0
        and -64 < code <= siginfo.SI_KERNEL
        and flags & ~_UC_FLAGS_KNOWN == 0
        and registers["trapno"] < _LAST_TRAP
    )
    return plausible and _returns_to_kernel(_PRETCODE.unpack_from(frame)[0], memory, mappings)


def _returns_to_kernel(address: int, memory: Memory, mappings: Sequence[Mapping]) -> bool:
    code = memory.read(address, len(_SIGRETURN))
    if code:
        return code == _SIGRETURN
    mapping = find(mappings, address)  # a core read on another machine has no code to look at
    return mapping is not None and "x" in mapping.permissions
