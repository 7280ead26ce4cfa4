from __future__ import annotations

import re

from faultlens.diagnosis.causes.base import PROVEN, STRONG, Cause, Finding, consider, evidence
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.diagnosis.evidence.ops import loads_tensorflow
from faultlens.diagnosis.evidence.recursion import Repetition, repeated
from faultlens.diagnosis.evidence.stacks import has_small_stack, stack_bytes
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.inspection.frames import short_function
from faultlens.inspection.owners import owner_of
from faultlens.records.diagnosis import Fix
from faultlens.text.sizes import in_words

# Python's own words when its guard against recursion failed.
_GIVEN_UP = re.compile(r"Fatal Python error: .*(?:[Ss]tack overflow|RecursiveCall)|Cannot recover from stack overflow")
# Recursive functions of Python's own: what they do for the program, and with what.
_BUILTINS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"^(?:tuple_?hash|frozenset_hash)"), "hash", "a nested tuple"),
    (re.compile(r"^(?:list|tuple|dict|set)_?repr|^PyObject_Repr"), "repr", "a nested structure"),
    (re.compile(r"^encoder_listencode"), "json.dumps", "a nested structure"),
    (re.compile(r"^save(?:_list|_dict|_tuple)?(?:\.|$)|^batch_(?:list|dict)"), "pickle.dumps", "a nested structure"),
)
_LARGER = consider("use a larger stack", "ulimit -s, or threading.stack_size(64 << 20) before the thread starts")


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
            title=_title(case, loop),
            op=case.op or (builtin[0] if (builtin := _builtin(loop)) else None),
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
            fixes=_fixes(case, loop, raised=limit is not None),
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


def _title(case: Case, loop: Repetition | None) -> str:
    if loop is None:
        return "the stack was used up"
    name = short_function(loop.function)
    if builtin := _builtin(loop):
        return f"{builtin[0]}() went too deep into {builtin[1]} and used up the stack"
    if case.op and _goes_through_data(case, loop):
        return f"{case.op} went too deep into its argument and used up the stack, in {name}()"
    return f"endless or very deep recursion of {name}() used up the stack"


def _builtin(loop: Repetition | None) -> tuple[str, str] | None:
    if loop is None or loop.python:
        return None
    return next(((does, what) for pattern, does, what in _BUILTINS if pattern.match(loop.function)), None)


def _goes_through_data(case: Case, loop: Repetition) -> bool:
    """TensorFlow's code, not a kernel of the user's: how deep it goes is told by what it was handed."""
    frame = next((frame for frame in case.stack if frame.function == loop.function), None)
    return not loop.python and frame is not None and owner_of(frame) in ("tensorflow", "python")


def _fixes(case: Case, loop: Repetition | None, raised: bool) -> tuple[Fix, ...]:
    python = bool(loop and loop.python)
    if loop and (_builtin(loop) or (case.op and _goes_through_data(case, loop))):
        where = f" at {case.location.file.rpartition('/')[2]}:{case.location.line}" if case.location else ""
        return (
            consider(
                f"hand in a structure that is less deep{where}",
                "build it flat, or flatten it in a loop first; a list that contains itself has no end",
            ),
            _LARGER,
        )
    flat = (
        "flat structures, tf.add_n, tf.while_loop" if loads_tensorflow(case.crash) else "a list of what is still to do"
    )
    fixes = [consider("turn the recursion into a loop, or make it less deep", flat)]
    if python and raised:
        fixes.insert(
            0, consider("do not raise the recursion limit", "Python then raises RecursionError with the place")
        )
    return (*fixes, _LARGER)
