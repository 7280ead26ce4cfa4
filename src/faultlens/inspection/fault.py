"""The fatal signal in full: siginfo, registers and the faulting instruction put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from faultlens.inspection import instruction
from faultlens.inspection.memory import Memory
from faultlens.inspection.siginfo import SignalInfo, parse
from faultlens.records import crash

GENERAL_REGISTERS = (
    *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14"),
    *("r15", "rip", "eflags"),
)

# x86 trap numbers and bits of the page-fault error code
X86_TRAP_PF = 14
INT3 = b"\xcc"
X86_PF_WRITE = 1 << 1
X86_PF_INSTR = 1 << 4


def build_fault(
    siginfo: bytes,
    registers: Mapping[str, int],
    thread: int,
    memory: Memory,
    mappings: Sequence[crash.Mapping],
    seen: Literal["direct", "chained", "endless", "signal-frame"] = "direct",
) -> crash.Fault:
    """`registers` in lower case (rax … r15, rip, rsp, rbp, eflags); trapno, err, fs_base where known."""
    info = parse(siginfo)
    rip = registers.get("rip", 0)
    if info.name == "SIGTRAP" and memory.read(rip - 1, 1) == INT3:
        rip -= 1  # the CPU stops behind a breakpoint instruction
    decoded = instruction.decode(rip, memory, registers, mappings) if info.is_fault else None
    return crash.Fault(
        signal=info.name,
        code=info.code_name,
        thread=thread,
        address=None if info.address is None else crash.Address(info.address),
        access=_access(info, registers, decoded) if info.is_fault else None,
        sender_pid=info.sender_pid,
        sender_uid=info.sender_uid,
        trap=registers.get("trapno") if info.is_fault else None,
        error=registers.get("err") if info.is_fault else None,
        registers={name: crash.Address(registers[name]) for name in GENERAL_REGISTERS if name in registers},
        instruction=decoded,
        seen=seen,
    )


def _access(info: SignalInfo, registers: Mapping[str, int], decoded: crash.Instruction | None) -> crash.Access | None:
    if registers.get("trapno") == X86_TRAP_PF and "err" in registers:
        error = registers["err"]
        return "execute" if error & X86_PF_INSTR else "write" if error & X86_PF_WRITE else "read"
    if info.name not in ("SIGSEGV", "SIGBUS"):
        return None
    if info.address is not None and info.address == registers.get("rip"):
        return "execute"
    operands = decoded.operands if decoded else ()
    if info.address is not None:
        for operand in operands:
            if operand.address is not None and 0 <= info.address - operand.address < max(operand.size, 1):
                return operand.access
    # A protection fault gives no address, and some addresses cannot be computed: one operand leaves no doubt.
    return operands[0].access if len(operands) == 1 else None
