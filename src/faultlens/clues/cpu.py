"""Which CPU features an instruction needs, and whether the CPU that ran it has them."""

from __future__ import annotations

import re

from faultlens.crash import Crash, Instruction

_EMULATOR = re.compile(r"(?:^|/)(?P<name>qemu-[\w-]+|box64|box86|FEX\w*|rosetta|valgrind)(?:$|/)")
# Names of iced-x86 whose flag in /proc/cpuinfo is spelled otherwise.
_FLAGS = {
    "AVX512_VBMI": "avx512vbmi", "AVX512_IFMA": "avx512ifma", "LZCNT": "abm", "SSE3": "pni", "SHA": "sha_ni",
    "PCLMULQDQ": "pclmulqdq", "CMPXCHG16B": "cx16", "PREFETCHW": "3dnowprefetch", "INVPCID": "invpcid",
}  # fmt: skip
# Instructions that exist to stop a program: ud2, ud1, ud0, int3, int1, hlt.
_TRAPS = ("0f0b", "0fb9", "0fff", "cc", "cd03", "f1", "f4")


def emulator(crash: Crash) -> str | None:
    """The emulator that stands in for the CPU; the host's features do not count then."""
    match = _EMULATOR.search(crash.program.executable or "")
    return match["name"] if match else None


def missing_features(crash: Crash, instruction: Instruction | None) -> tuple[str, ...]:
    flags = set(crash.machine.cpu_flags) if crash.machine else set()
    if instruction is None or not flags or emulator(crash):
        return ()
    return tuple(feature for feature in instruction.cpu_features if _is_flag(feature) and not _has(flags, feature))


def is_trap(instruction: Instruction) -> bool:
    return instruction.code.startswith(_TRAPS)


def _is_flag(feature: str) -> bool:
    return not feature.startswith(("INTEL", "NOT_", "CPUID", "MULTIBYTENOP")) and "OR" not in feature.split("_")


def _has(flags: set[str], feature: str) -> bool:
    plain = {flag.replace("_", "") for flag in flags}
    return _FLAGS.get(feature, feature).lower().replace("_", "") in plain
