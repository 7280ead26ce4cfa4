from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import LIKELY, PROVEN, Cause, Finding, evidence
from faultlens.diagnosis.causes.tensorflow import advice
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.explained import explained
from faultlens.diagnosis.evidence.tensorflow_code import activity, responsible
from faultlens.records.crash import Fault

_MINUS_ONE = ("is 0xffffffff", "is 0xffffffffffffffff")
_DIVIDES = re.compile(r"^i?div (?P<register>\w+)$")


class OpDivisionByZero(Cause):
    """
    ## What it is
    An op of TensorFlow divided an integer by a size or a number that is zero: an empty dimension, a block size or a
    stride of 0, a number that overflowed to 0. The CPU cannot do that and the kernel ends the process. (Dividing
    floats gives inf or nan, and `tf.math.floordiv` of integer tensors raises: this is arithmetic inside of the op.)

    ## How it looks
    SIGFPE ("floating point exception", although no floats are involved) without any message.

    ## How to prove it
    The signal comes with FPE_INTDIV, the instruction is `div` or `idiv`, and the register it divides by is 0.

    ## How to fix it
    Find the argument that is 0 or empty, or so large that a product of sizes overflows, and reject it before the
    call. Newer releases often do.
    """

    slug = "op-division-by-zero"
    code = "FL504"
    headline = "TensorFlow divided by zero on input it should have rejected"

    def examine(self, case: Case) -> Finding | None:
        fault, frame = case.fault, responsible(case)
        if fault is None or fault.signal != "SIGFPE" or case.sent or frame is None:
            return None
        said, divisor = explained(case, self.slug), _divisor(fault)
        overflow = divisor is not None and divisor[0].endswith(_MINUS_ONE)
        did = "divided the smallest integer by -1, which does not fit" if overflow else "divided an integer by zero"
        return Finding(
            strength=LIKELY if activity(case) == "compiling" else PROVEN,
            title=advice.titled(f"{advice.at_work(case)} {did} inside TensorFlow", said),
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                divisor,
                advice.place_evidence(case, frame),
                *advice.known_evidence(case, self.slug),
            ),
            fixes=advice.fixes(case, self.slug, *advice.argument_fixes(case, said)),
        )


def _divisor(fault: Fault) -> tuple[str, str] | None:
    """What it divided by: 0, or -1 when the result does not fit."""
    text = fault.instruction.text if fault.instruction else ""
    match = _DIVIDES.match(text)
    value = fault.registers.get(_whole(match["register"])) if match else None
    if match is None or value is None:
        return (f"`{text}` cannot be carried out", "instruction") if text else None
    wide = not match["register"].startswith("e") and not match["register"].endswith("d")
    divisor = value if wide else value & 0xFFFFFFFF
    return f"`{text}`: {match['register']} is {divisor:#x}", "registers"


def _whole(register: str) -> str:
    """The 64-bit register that a part belongs to: r15d is part of r15, ecx of rcx."""
    if register.startswith("r"):
        return register.rstrip("dwb")
    return f"r{register[1:]}" if register.startswith("e") else register
