"""The fatal signal, and the instruction at which it came."""

from __future__ import annotations

from typing import Literal

from faultlens.records.base import Address, Record

Access = Literal["read", "write", "execute"]


class MemoryOperand(Record, frozen=True):
    """One memory access of the faulting instruction, with the address it went to."""

    expression: str  # "[rdi+8]"
    access: Access
    size: int  # bytes; 0 when the instruction does not say
    address: Address | None = None
    registers: dict[str, Address] = {}  # those the address was computed from


class Instruction(Record, frozen=True):
    """The instruction at which the process was stopped."""

    address: Address
    code: str  # its bytes in hexadecimal
    text: str = ""  # disassembly
    operands: tuple[MemoryOperand, ...] = ()
    cpu_features: tuple[str, ...] = ()  # CPUID features it needs ("AVX512F")
    library: str | None = None
    offset: Address | None = None  # within the library file


class Fault(Record, frozen=True):
    """The fatal signal, with the facts the kernel gave about it."""

    signal: str
    code: str  # name of si_code: "SEGV_MAPERR", "SI_TKILL"
    thread: int
    address: Address | None = None  # si_addr; None for signals that carry none
    access: Access | None = None  # from the page-fault error code, or from the instruction
    sender_pid: int | None = None
    sender_uid: int | None = None
    trap: int | None = None  # x86 trap number: 14 page fault, 13 general protection, 0 divide, 6 opcode
    error: int | None = None  # x86 page-fault error code
    registers: dict[str, Address] = {}
    instruction: Instruction | None = None
    # "direct": seen as it happened; "chained": seen before the program's own handler, which gave up;
    # "endless": which returned to the instruction, so that it faults again and again;
    # "signal-frame": read back from the frame that an earlier handler left on the stack.
    seen: Literal["direct", "chained", "endless", "signal-frame"] = "direct"
