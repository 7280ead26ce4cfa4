"""Which CPU features an instruction needs, and whether the CPU that ran it has them."""

from __future__ import annotations

import re

from faultlens.knowledge.cpu_features import lacking
from faultlens.records.crash import Crash, Instruction

_EMULATOR = re.compile(r"(?:^|/)(?P<name>qemu-[\w-]+|box64|box86|FEX\w*|rosetta|valgrind)(?:$|/)")
# Instructions that exist to stop a program: ud2, ud1, ud0, int3, int1, hlt.
_TRAPS = ("0f0b", "0fb9", "0fff", "cc", "cd03", "f1", "f4")


def emulator(crash: Crash) -> str | None:
    """The emulator that stands in for the CPU; the host's features do not count then."""
    return emulator_named(crash.program.executable or "")


def emulator_named(executable: str) -> str | None:
    match = _EMULATOR.search(executable)
    return match["name"] if match else None


def missing_features(crash: Crash, instruction: Instruction | None) -> tuple[str, ...]:
    flags = crash.machine.cpu_flags if crash.machine else ()
    if instruction is None or not flags or emulator(crash):
        return ()
    return lacking(instruction.cpu_features, flags)


def is_trap(instruction: Instruction) -> bool:
    return instruction.code.startswith(_TRAPS)
