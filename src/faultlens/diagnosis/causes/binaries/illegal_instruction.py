from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.system.cpu import emulator, is_trap, missing_features

_GUARD = re.compile(r"compiled to use [^\n]* instructions, but these aren't available")
_VECTOR_PREFIXES = ("c4", "c5", "62")  # VEX and EVEX: AVX and later


class IllegalInstruction(Cause):
    """
    ## What it is
    The code was compiled for a newer CPU than the one it runs on: it contains an instruction (AVX, AVX2, FMA,
    AVX-512, …) that this CPU, virtual machine or emulator does not know. The wheels of TensorFlow need AVX; builds
    with `-march=native` need everything the build machine had.

    ## How it looks
    SIGILL, often already in `import tensorflow` and without any message.

    ## How to prove it
    The bytes at the faulting address are an instruction, and a feature it needs is missing from the flags in
    `/proc/cpuinfo`.

    ## How to fix it
    Rebuild for the machine it runs on (`-march=x86-64-v2`, or the oldest CPU of the cluster), install a build
    without the feature, or give the virtual machine the host's CPU (`-cpu host`).
    """

    slug = "illegal-instruction"
    code = "FL401"
    headline = "The code needs a CPU feature that this CPU lacks"

    def examine(self, case: Case) -> Finding | None:
        guard = line_saying(case.crash, _GUARD) if case.signal in ("SIGABRT", "SIGILL") else None
        instruction = case.fault.instruction if case.fault and case.signal == "SIGILL" and not case.sent else None
        if guard is None and (instruction is None or is_trap(instruction)):
            return None
        missing = missing_features(case.crash, instruction)
        needs = " and ".join(missing or (instruction.cpu_features if instruction else ())) or "newer instructions"
        where = (instruction.library if instruction else None) or "the program"
        emulated = emulator(case.crash)
        machine = f"the CPU that {emulated} emulates" if emulated else "this CPU"
        return Finding(
            strength=_strength(case, bool(missing or guard), instruction.code if instruction else ""),
            title=f"{where.rpartition('/')[2]} uses {needs}, which {machine} does not have",
            evidence=evidence(
                *case.fault_evidence[:1],
                (f"`{instruction.text}` needs {needs}", "instruction") if instruction else None,
                (f"{needs} is not among the CPU's features", "/proc/cpuinfo") if missing else None,
                (f"it runs under {emulated}: the host's features do not count", "/proc/PID/exe") if emulated else None,
                (guard, "stderr") if guard else None,
            ),
            fixes=(
                consider(f"build {where.rpartition('/')[2]} for this CPU", "-march=x86-64-v2 instead of -march=native"),
                safe("run it on a machine whose CPU has the feature", "the flags in /proc/cpuinfo tell"),
            ),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.signal in ("SIGSEGV", "SIGBUS", "SIGFPE") and case.fault is not None:
            return f"an instruction that the CPU does not know raises SIGILL, not {case.signal}"
        return None


def _strength(case: Case, certain: bool, code: str) -> float:
    if certain:
        return PROVEN
    if emulator(case.crash) and code.startswith(_VECTOR_PREFIXES):
        return STRONG
    return LIKELY if code.startswith(_VECTOR_PREFIXES) else POSSIBLE
