from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.diagnosis.evidence.ops import loads_tensorflow
from faultlens.diagnosis.evidence.recursion import repeated
from faultlens.diagnosis.evidence.stacks import has_small_stack, stack_bytes
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import short_function
from faultlens.records.diagnosis import Fix
from faultlens.text.sizes import in_words

# Python's own words when its guard against recursion failed.
_GIVEN_UP = re.compile(r"Fatal Python error: .*(?:[Ss]tack overflow|RecursiveCall)|Cannot recover from stack overflow")


class StackOverflow(Cause):
    """
    ## What it is
    Calls were nested so deeply that the stack of the thread (8 MiB as a rule) was used up: endless or very deep
    recursion in Python, in TensorFlow (deeply nested structures, chains of thousands of ops or datasets) or in
    native code, or a huge local variable.

    ## How it looks
    SIGSEGV with an address just below the stack. Python protects itself with RecursionError, but not when
    `sys.setrecursionlimit` was raised, and not while native code calls back and forth (`__repr__`, `__eq__`,
    callbacks).

    ## How to prove it
    The address of the access is near the stack pointer and outside of the stack's memory; the same functions stand
    on the stack over and over.

    ## How to fix it
    Turn the recursion into a loop, or make it less deep (balanced sums instead of chains, `tf.add_n`,
    `tf.while_loop`, flat structures). Do not raise the recursion limit beyond some thousands. As a last resort a
    larger stack: `ulimit -s`, or `threading.stack_size` before the thread is started.
    """

    slug = "stack-overflow"
    code = "FL206"
    headline = "Recursion ran out of stack"

    def examine(self, case: Case) -> Finding | None:
        given_up = line_saying(case.crash, _GIVEN_UP) if case.signal == "SIGABRT" else None
        if not case.hits_stack_end and given_up is None:
            return None
        if case.hits_stack_end and has_small_stack(case):
            return None
        fault, loop, size = case.fault, repeated(case.stack), stack_bytes(case)
        pointer = fault.registers.get("rsp") if fault else None
        limit = case.mentions(Wording.SETS_RECURSION_LIMIT)
        name = short_function(loop.function) if loop else None
        return Finding(
            strength=PROVEN if loop or given_up else STRONG,
            title=f"endless or very deep recursion of {name}() used up the stack" if name else "the stack was used up",
            op=case.op,
            evidence=evidence(
                *case.fault_evidence[:1],
                (f"the stack pointer is {pointer:#x}: the access went past the end of the stack", "registers")
                if pointer is not None and case.hits_stack_end
                else None,
                (given_up, "stderr") if given_up else None,
                (f"{name} stands on the stack {loop.times_in_words}", "stack") if loop else None,
                (f"the stack is {in_words(size)} large", "/proc/PID/maps") if size else None,
                (f"the recursion limit was raised: {limit.text}", "source") if limit else None,
            ),
            fixes=_fixes(case, bool(loop and loop.python), raised=limit is not None),
        )

    def rule_out(self, case: Case) -> str | None:
        fault = case.fault
        if (
            fault is None
            or fault.signal not in ("SIGSEGV", "SIGBUS")
            or fault.address is None
            or "rsp" not in fault.registers
        ):
            return None
        return (
            f"the address {fault.address:#x} is not at the end of the stack (stack pointer {fault.registers['rsp']:#x})"
        )


def _fixes(case: Case, python: bool, raised: bool) -> tuple[Fix, ...]:
    flat = (
        "flat structures, tf.add_n, tf.while_loop" if loads_tensorflow(case.crash) else "a list of what is still to do"
    )
    fixes = [consider("turn the recursion into a loop, or make it less deep", flat)]
    if python and raised:
        fixes.insert(
            0, consider("do not raise the recursion limit", "Python then raises RecursionError with the place")
        )
    fixes.append(
        consider("use a larger stack", "ulimit -s, or threading.stack_size(64 << 20) before the thread starts")
    )
    return tuple(fixes)
