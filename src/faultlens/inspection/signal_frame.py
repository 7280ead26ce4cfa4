"""The true fault behind a signal that a handler raised again.

faulthandler, and most handlers that print something, end by raising the signal a second time: the kernel then
reports SI_TKILL without an address. The first report is still on the stack, in the frame the kernel built to
call the handler (struct rt_sigframe): registers, trap number, error code and cr2. siginfo is in it only for
handlers with SA_SIGINFO, which faulthandler's is not; for the others it follows from the trap.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterator, Sequence

from faultlens.inspection import siginfo
from faultlens.inspection.maps import find
from faultlens.inspection.memory import Memory
from faultlens.records.crash import Mapping

MAX_SCAN = 1 << 20
_JUST_LEFT = 16 << 10  # frame, vector registers (with AMX 11 kB) and red zone

# struct rt_sigframe: pretcode, ucontext (flags, link, stack, sigcontext, sigmask), siginfo
_WORD = struct.Struct("<Q")
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

_EFLAGS_ALWAYS = 0x202  # the reserved bit, and interrupts allowed
_SIGRETURN = bytes.fromhex("48c7c00f0000000f05")  # mov $15,%rax; syscall
_SYSCALL = bytes.fromhex("0f05")
_SIGINFO_HEAD = struct.Struct("<iiiiQ")  # si_signo, si_errno, si_code, padding, si_addr

# x86 trap -> signals it may become; trap 0 is a division by zero, and what a thread shows that never faulted.
_SIGNALS_OF_TRAP = {
    0: (signal.SIGFPE,),
    1: (signal.SIGTRAP,),
    3: (signal.SIGTRAP,),
    6: (signal.SIGILL,),
    11: (signal.SIGBUS,),
    12: (signal.SIGBUS,),
    13: (signal.SIGSEGV,),
    14: (signal.SIGSEGV, signal.SIGBUS),
    16: (signal.SIGFPE,),
    17: (signal.SIGBUS,),
    19: (signal.SIGFPE,),
}
_LAST_TRAP = 32
_TRAP_DIVIDE, _TRAP_OPCODE, _TRAP_PAGE_FAULT, _TRAP_ALIGNMENT = 0, 6, 14, 17


def recover(
    memory: Memory, registers: dict[str, int], mappings: Sequence[Mapping], last_siginfo: bytes
) -> tuple[bytes, dict[str, int]] | None:
    """siginfo and registers (with trapno, err and cr2) of the signal a handler was called for, if any.

    `registers` are the thread's now, `last_siginfo` is that of the signal raised last. The innermost true fault
    counts; a frame of a signal that was sent, as by abort(), is taken when there is none.
    """
    sent = None
    for frame in _frames(memory, registers, mappings):
        saved = _saved_registers(frame)
        info = _siginfo(frame, saved, memory, mappings, last_siginfo)
        if siginfo.parse(info).is_fault:
            return info, saved
        sent = sent or (info, saved)
    return sent


def _frames(memory: Memory, registers: dict[str, int], mappings: Sequence[Mapping]) -> Iterator[bytes]:
    """What looks like a signal frame in every respect, innermost first."""
    stack_pointer = registers["rsp"]
    mapping = find(mappings, stack_pointer)
    if mapping is None:
        return
    # A signal that is blocked while its handler runs comes when the handler returns, to where it was called
    # from: the frame has just been left, and is still there.
    for frame in _frames_between(max(mapping.start, stack_pointer - _JUST_LEFT), stack_pointer, memory, mappings):
        saved = _saved_registers(frame)
        if saved["rip"] == registers["rip"] and saved["rsp"] == stack_pointer:
            yield frame
    end = min(mapping.end, stack_pointer + MAX_SCAN)
    yield from _frames_between(stack_pointer, end, memory, mappings)


def _frames_between(start: int, end: int, memory: Memory, mappings: Sequence[Mapping]) -> Iterator[bytes]:
    stack = memory.read(start, end - start)
    position = stack.find(_USER_CS)
    while position >= 0:
        begin = position - _CS
        # The kernel aligns the frame so that it lies 8 bytes off a multiple of 16, like a called function's.
        if begin >= 0 and (start + begin) % 16 == 8:
            frame = stack[begin : begin + _FRAME_SIZE]
            if len(frame) == _FRAME_SIZE and _is_signal_frame(frame, memory, mappings):
                yield frame
        position = stack.find(_USER_CS, position + 1)


def _is_signal_frame(frame: bytes, memory: Memory, mappings: Sequence[Mapping]) -> bool:
    registers = _saved_registers(frame)
    (flags,) = _WORD.unpack_from(frame, _UC_FLAGS)
    return (
        flags & ~_UC_FLAGS_KNOWN == 0
        and registers["trapno"] < _LAST_TRAP
        and registers["eflags"] & _EFLAGS_ALWAYS == _EFLAGS_ALWAYS
        and _returns_to_kernel(_WORD.unpack_from(frame)[0], memory, mappings)
    )


def _saved_registers(frame: bytes) -> dict[str, int]:
    return dict(zip(_NAMES, _REGISTERS.unpack_from(frame, _SIGCONTEXT), strict=True))


def _returns_to_kernel(address: int, memory: Memory, mappings: Sequence[Mapping]) -> bool:
    code = memory.read(address, len(_SIGRETURN))
    if code:
        return code == _SIGRETURN
    mapping = find(mappings, address)  # a core read on another machine has no code to look at
    return mapping is not None and "x" in mapping.permissions


def _siginfo(
    frame: bytes,
    registers: dict[str, int],
    memory: Memory,
    mappings: Sequence[Mapping],
    last_siginfo: bytes,
) -> bytes:
    written, last = siginfo.parse(frame[_SIGINFO:]), siginfo.parse(last_siginfo)
    signals = _SIGNALS_OF_TRAP.get(registers["trapno"], ())
    # Where the kernel wrote none, there is anything: only what agrees with the rest of the frame counts.
    if written.number in signals and written.is_fault and written.address in _addresses(registers):
        return frame[_SIGINFO:]
    # A thread that sends itself a signal gets it on its way out of the system call.
    was_sent = memory.read(registers["rip"] - len(_SYSCALL), len(_SYSCALL)) == _SYSCALL
    if last.number in signals and not was_sent:
        head = _SIGINFO_HEAD.pack(last.number, 0, *_code_and_address(last.number, registers, mappings))
        return head.ljust(siginfo.SIGINFO_SIZE, b"\0")
    return last_siginfo


def _addresses(registers: dict[str, int]) -> tuple[int | None, ...]:
    """What si_addr may be for the trap."""
    if registers["trapno"] == _TRAP_PAGE_FAULT:
        return (registers["cr2"],)
    return registers["rip"], None


def _code_and_address(number: int, registers: dict[str, int], mappings: Sequence[Mapping]) -> tuple[int, int, int]:
    """si_code, padding and si_addr as the kernel chooses them for a trap."""
    trap = registers["trapno"]
    if trap == _TRAP_PAGE_FAULT:
        if number == signal.SIGBUS:
            return siginfo.BUS_ADRERR, 0, registers["cr2"]
        is_mapped = find(mappings, registers["cr2"]) is not None
        return siginfo.SEGV_ACCERR if is_mapped else siginfo.SEGV_MAPERR, 0, registers["cr2"]
    by_trap = {
        _TRAP_DIVIDE: siginfo.FPE_INTDIV,
        _TRAP_OPCODE: siginfo.ILL_ILLOPN,
        _TRAP_ALIGNMENT: siginfo.BUS_ADRALN,
    }
    if trap in by_trap:
        return by_trap[trap], 0, registers["rip"]
    return siginfo.SI_KERNEL, 0, 0
