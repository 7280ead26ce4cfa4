from __future__ import annotations

import ast
import re

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence import call_arguments
from faultlens.diagnosis.evidence.addresses import CANONICAL_TOP, NULL_PAGE
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.explained import Explained, explained
from faultlens.diagnosis.evidence.limits import (
    SMALL,
    address_space,
    failed_allocation,
    forks,
    memory_total,
    raised_by_user,
    requested,
    requested_shape,
)
from faultlens.diagnosis.evidence.messages import line_saying
from faultlens.inspection.owners import first_owned
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words

# Containers that refuse a size which no machine has, in the words of libstdc++ and abseil.
_ABSURD = re.compile(
    r"std::length_error|std::bad_array_new_length|larger than max_size|vector::(?:reserve|_M_\w+|resize)"
    r"|basic_string::_M_(?:create|replace\w*)|[Hh]ash table size overflow|allocation size (?:overflow|too large)"
)
_TOO_LONG = ("std::length_error", "std::bad_array_new_length")


class OversizedAllocation(Cause):
    """
    ## What it is
    One call asked for an absurd amount of memory (a huge buffer size, a shape with a few zeros too many, a size
    that overflowed), the request was refused, and the code did not handle the refusal.

    ## How it looks
    `std::bad_alloc` or `std::length_error` inside of an op: SIGABRT ("terminate called after throwing"), or SIGSEGV
    in `PyErr_Occurred` when the exception escapes while the GIL is not held. In NumPy and most ops it is an
    exception that names the size.

    ## How to prove it
    The exception was thrown although neither a limit nor the memory of the machine was near: compare the memory in
    use with both. The frames that threw it name the op; its arguments hold the number.

    ## How to fix it
    Check the sizes that are passed: buffer sizes, capacities, shapes computed from data, -1 or 2**63 used for
    "unlimited". Validate sizes that come from files or users before they reach the op.
    """

    slug = "oversized-allocation"
    code = "FL203"
    headline = "One call asked for an absurd amount of memory"

    def examine(self, case: Case) -> Finding | None:
        absurd = _absurd(case)
        symptom = absurd or failed_allocation(case)
        wanted, total = requested(case), memory_total(case.crash)
        if symptom is None or (not absurd and _was_short(case, wanted)):
            return None
        if SMALL.search(symptom.fact) or forks(case) or raised_by_user(case):  # a process asks for what its parent has
            return None
        shape = requested_shape(case.exception.details) if case.exception else None
        rss = case.crash.memory.rss if case.crash.memory else None
        said = explained(case, self.slug)
        return Finding(
            strength=_strength(case, wanted),
            title=_title(case, wanted, said),
            op=case.op,
            evidence=evidence(
                symptom,
                (f"it was to have the shape {shape}", "message") if shape and case.op else None,
                (f"only {in_words(rss)} of {in_words(total)} were in use", "/proc/PID/status")
                if rss and total
                else (f"the machine has {in_words(total)}", "/proc/meminfo")
                if total
                else None,
                ("the address space is not limited", "/proc/PID/limits") if not address_space(case.crash) else None,
                *case.fault_evidence[:1],
            ),
            fixes=(
                consider(said.instead, said.detail) if said else _look_at(case, shape),
                safe("check sizes that come from data or users before they reach the op"),
            ),
        )


def _look_at(case: Case, shape: str | None) -> Fix:
    if shape:
        pieces = "is it the one that was meant? Data of that size go piece by piece: batches, tf.data, np.memmap"
        return consider(f"look at the shape {shape}", pieces)
    made = call_arguments.dataset_call(case.op, case.crash.sources)
    if made is None:
        return consider("pass a size that fits the memory", "look at buffer sizes, capacities and shapes on this line")
    call, location = made
    given = ", ".join(call_arguments.in_words(call))
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    place = f"{location.file.rpartition('/')[2]}:{location.line}"
    return consider("pass a size that fits the memory", f"look at `{name}({given})` in {place}")


def _title(case: Case, wanted: int | None, said: Explained | None) -> str:
    """What was asked for, and what there is."""
    total = memory_total(case.crash)
    asked = f"{in_words(wanted)} of memory" if wanted else "an absurd amount of memory"
    if case.fault is not None:
        why = f": {said.says}" if said else ", and the refusal was not handled"
        return f"{case.op or 'one call'} asked for {asked}{why}"
    if wanted is None:
        asked = "more memory at once than can be had"
    shape = requested_shape(case.exception.details) if case.exception else None
    who = case.op or (f"an array of shape {shape}" if shape else "one call")
    return f"{who} asked for {asked}" + (f"; the machine has {in_words(total)}" if total else "")


def _absurd(case: Case) -> Evidence | None:
    """A size was refused as such: no limit is needed to explain that."""
    if case.thrown is not None and case.thrown.type in _TOO_LONG:
        return Evidence(fact=f"{case.thrown.type} was thrown: {case.thrown.message or ''}", source="C++ exceptions")
    if size := _indexed_null(case):
        fact = f"a null pointer was used with the size {size:#x}: memory of that size had been refused"
        return Evidence(fact=fact, source="registers")
    line = line_saying(case.crash, _ABSURD) if case.signal == "SIGABRT" else None
    return Evidence(fact=one_line(line, 200), source="stderr") if line else None


def _indexed_null(case: Case) -> int | None:
    """The absurd size that was added to a null pointer, if that is how the address came about.

    Code that did not look at what it was given writes to it first; garbage is read as well."""
    if case.fault is None or case.fault.access != "write" or case.owner not in ("tensorflow", "custom"):
        return None
    instruction = case.fault.instruction
    for operand in instruction.operands if instruction else ():
        values = sorted(int(value) for value in operand.registers.values())
        # Larger than any address can be, so that it was no pointer; negative numbers are an index gone wrong.
        if len(values) == 2 and values[0] < NULL_PAGE and CANONICAL_TOP <= values[1] < 1 << 63:
            return values[1]
    return None


def _was_short(case: Case, wanted: int | None) -> bool:
    """Little memory was left, so that an ordinary request may have failed."""
    budget, limit, memory = address_space(case.crash), memory_total(case.crash), case.crash.memory
    if wanted and limit and wanted > limit:
        return False  # no limit is needed to explain that
    if budget is not None and (case.crash.method == "status" or budget.used > budget.limit / 2):
        return True
    return bool(limit and memory and memory.rss and memory.rss > 0.8 * limit)


def _strength(case: Case, wanted: int | None) -> float:
    if case.fault is None:  # an exception says so itself, and most name the size
        total = memory_total(case.crash)
        if wanted and wanted > (total or 1 << 40):
            return PROVEN if total else STRONG
        return LIKELY + 0.05 if total else LIKELY - 0.05
    if case.exception and _absurd(case) is None and case.thrown is None and case.termination is None:
        return POSSIBLE - 0.1  # Python reported the refusal, and something else crashed later
    thrower = case.thrown.frames if case.thrown else case.native_stack
    # Code of the user's own that throws is the first thing to mend, whatever the size was.
    return LIKELY if first_owned(thrower, "custom") else STRONG
