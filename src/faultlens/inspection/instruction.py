"""What the faulting instruction was about to do: its text, its memory operands, the CPU features it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from iced_x86 import (
    Code,
    CpuidFeature,
    Decoder,
    Formatter,
    FormatterSyntax,
    InstructionInfoFactory,
    MemorySizeExt,
    OpAccess,
    Register,
    RegisterExt,
    UsedMemory,
)

from faultlens.inspection.maps import locate
from faultlens.inspection.memory import Memory
from faultlens.records import crash

MAX_INSTRUCTION_BYTES = 15
WORD = (1 << 64) - 1

# Every x86-64 CPU has these; naming them would only hide the one that is missing.
_BASELINE = frozenset({"X64", "FPU", "MMX", "SSE", "SSE2", "CMOV", "CX8", "FXSR", "TSC", "SYSCALL", "MSR"})
_FEATURES = {number: name for name, number in vars(CpuidFeature).items() if isinstance(number, int)}
_WRITES = frozenset({OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE})
_READS = frozenset({OpAccess.READ, OpAccess.COND_READ})
_SEGMENT_BASES = {Register.FS: "fs_base", Register.GS: "gs_base"}
_REGISTERS = {number: name.lower() for name, number in vars(Register).items() if isinstance(number, int)}


def decode(
    address: int, memory: Memory, registers: Mapping[str, int], mappings: Sequence[crash.Mapping]
) -> crash.Instruction | None:
    """The instruction at `address`, or None where no code can be read."""
    code = memory.read(address, MAX_INSTRUCTION_BYTES)
    if not code:
        return None
    place = locate(mappings, address)
    library = place.path if place else None
    offset = crash.Address(place.offset) if place else None
    instruction = Decoder(64, code, ip=address & WORD).decode()
    if instruction.code == Code.INVALID:
        return crash.Instruction(
            address=crash.Address(address), code=code.hex(), text="(bad)", library=library, offset=offset
        )
    used = InstructionInfoFactory().info(instruction).used_memory()
    features = (_FEATURES[number] for number in instruction.cpuid_features())
    return crash.Instruction(
        address=crash.Address(address),
        code=code[: instruction.len].hex(),
        text=formatter().format(instruction),
        operands=tuple(_operand(each, registers) for each in used if each.access in _READS | _WRITES),
        cpu_features=tuple(name for name in features if name not in _BASELINE and "INTEL" not in name),
        library=library,
        offset=offset,
    )


def _operand(used: UsedMemory, registers: Mapping[str, int]) -> crash.MemoryOperand:
    needed = [number for number in (used.base, used.index) if number != Register.NONE]
    values = {_REGISTERS[number]: _value(number, registers) for number in needed}
    return crash.MemoryOperand(
        expression=_expression(used),
        # An instruction that reads and writes one place faults as a write.
        access="write" if used.access in _WRITES else "read",
        size=MemorySizeExt.size(used.memory_size),
        address=_effective_address(used, registers),
        registers={name: crash.Address(value) for name, value in values.items() if value is not None},
    )


def _effective_address(used: UsedMemory, registers: Mapping[str, int]) -> crash.Address | None:
    address = int(used.displacement)
    for number, scale in ((used.base, 1), (used.index, used.scale)):
        if number != Register.NONE:
            value = _value(number, registers)
            if value is None:
                return None
            address += value * scale
    if used.segment in _SEGMENT_BASES:
        base = registers.get(_SEGMENT_BASES[used.segment])
        if base is None:
            return None
        address += base
    return crash.Address(address & WORD)


def _value(number: Any, registers: Mapping[str, int]) -> int | None:
    """Value of a general register or the low part of one; None for vector registers."""
    whole = registers.get(_REGISTERS[RegisterExt.full_register(number)])
    return None if whole is None else whole & ((1 << 8 * RegisterExt.size(number)) - 1)


def _expression(used: UsedMemory) -> str:
    terms: list[str] = [_REGISTERS[used.base]] if used.base != Register.NONE else []
    if used.index != Register.NONE:
        terms.append(_REGISTERS[used.index] + (f"*{used.scale}" if used.scale > 1 else ""))
    text = "+".join(terms)
    displacement = int(used.displacement_i64)
    if not terms:
        text = hex(int(used.displacement))
    elif displacement:
        number = abs(displacement)
        text += ("-" if displacement < 0 else "+") + (str(number) if number < 10 else hex(number))
    segment = f"{_REGISTERS[used.segment]}:" if used.segment in _SEGMENT_BASES else ""
    return f"{segment}[{text}]"


@cache
def formatter() -> Formatter:
    """Instructions as this project writes them: `mov rax, [rdi+8]`."""
    made = Formatter(FormatterSyntax.INTEL)
    made.space_after_operand_separator = True
    made.hex_prefix = "0x"
    made.hex_suffix = ""
    made.uppercase_hex = False
    made.branch_leading_zeros = False
    return made
