from __future__ import annotations

from faultlens.diagnosis.causes.base import LIKELY, POSSIBLE, PROVEN, STRONG, Cause, Finding, consider, evidence, safe
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.leaks import evidence_of, fixes_of, growth_of
from faultlens.diagnosis.evidence.limits import (
    MIB,
    SMALL,
    THREAD_STACK,
    Budget,
    address_space,
    failed_allocation,
    failed_thread,
    memory_total,
    requested,
    threads_refused,
)
from faultlens.diagnosis.evidence.loader import short
from faultlens.diagnosis.evidence.wordings import Wording
from faultlens.records.diagnosis import Evidence
from faultlens.text.sizes import in_words

NEARLY_USED = 0.85  # of the limit: what was refused need not be small


class AddressSpaceLimit(Cause):
    """
    ## What it is
    `RLIMIT_AS` (`ulimit -v`) limits the address space, not the memory in use. TensorFlow maps more than a gigabyte
    before it computes anything. When the limit is reached, the next allocation, library or thread fails, wherever
    it happens to be, although the machine has plenty of memory.

    ## How it looks
    One cause, many endings: `MemoryError`, ResourceExhaustedError, SIGSEGV in `PyErr_Occurred` (a `std::bad_alloc`
    that escaped), abort on `std::bad_alloc`, abort on "pthread_create() failed", ImportError "failed to map
    segment".

    ## How to prove it
    Compare "Max address space" in `/proc/PID/limits` with `VmPeak` in `/proc/PID/status`: hardly anything is left.

    ## How to fix it
    `ulimit -v unlimited`, or limit the memory in use with a control group (`systemd-run -p MemoryMax=…`, the
    container's limit) instead. Batch systems set it from the requested memory: ask for more.
    """

    slug = "address-space-limit"
    code = "FL202"
    headline = "The limit on the address space was reached"

    def examine(self, case: Case) -> Finding | None:
        budget = address_space(case.crash)
        symptom = failed_allocation(case) or failed_thread(case) or _unchecked_null(case, budget)
        if symptom is None:
            return None
        growth = growth_of(case.crash, "memory", "threads")
        mention = case.mentions(Wording.SETS_ADDRESS_SPACE)
        # Limits of a process that was only sampled may be older than the line that sets one.
        if budget is None and not case.said(SMALL) and (mention is None or case.crash.method != "status"):
            return None
        return Finding(
            strength=_strength(case, budget),
            title=_title(budget, requested(case)),
            evidence=evidence(
                symptom,
                (_used(case, budget), "/proc/PID")
                if budget
                else ("so little is refused only where the address space or the memory is used up", "errno")
                if case.said(SMALL)
                else None,
                (f"the limit is set at {mention.file}:{mention.line}: {mention.text}", "source") if mention else None,
                *case.fault_evidence[:1],
                *evidence_of(growth),
            ),
            fixes=(
                *fixes_of(growth),
                *([consider(f"raise the limit that {short(mention.file)}:{mention.line} sets")] if mention else ()),
                safe(
                    "lift the limit on the address space",
                    "ulimit -v unlimited, or ask the batch system for more memory",
                ),
                consider("limit the memory in use instead", "a control group counts what is used, not what is mapped"),
            ),
        )

    def rule_out(self, case: Case) -> str | None:
        if case.fault is None or "RLIMIT_AS" not in case.crash.limits:
            return None
        budget = address_space(case.crash)
        if budget is None:
            return "the address space is not limited (RLIMIT_AS)"
        if budget.used and budget.used < budget.limit / 2:
            return f"{in_words(budget.left)} of the address space were left (RLIMIT_AS)"
        return None


def _used(case: Case, budget: Budget) -> str:
    """What was sampled long before the end says nothing."""
    seen = case.crash.method != "status" or budget.used > budget.limit / 2
    used = f", at most {in_words(budget.used)} were seen in use" if seen else ""
    return f"RLIMIT_AS is {in_words(budget.limit)}{used}"


def _title(budget: Budget | None, wanted: int | None) -> str:
    if budget is None:
        return "no more address space could be had"
    limited = f"the address space is limited to {in_words(budget.limit)} (RLIMIT_AS)"
    return (
        f"{limited}, and {f'another {in_words(wanted)}' if wanted else 'no more'} could {'not ' * bool(wanted)}be had"
    )


def _unchecked_null(case: Case, budget: Budget | None) -> Evidence | None:
    """Code that does not look at what malloc returns uses a null pointer when no more can be had."""
    if not case.is_null or budget is None or budget.used < NEARLY_USED * budget.limit:
        return None
    return Evidence(fact="a null pointer was used when hardly any address space was left", source="siginfo")


def _strength(case: Case, budget: Budget | None) -> float:
    if _unchecked_null(case, budget) and not failed_allocation(case):
        return LIKELY
    if budget is None:
        return LIKELY + 0.05 if not case.crash.limits else LIKELY - 0.1  # the limit itself was not seen
    wanted = requested(case)
    if wanted is not None:
        return POSSIBLE if wanted > (memory_total(case.crash) or budget.limit * 4) else STRONG
    if not failed_allocation(case):  # only a thread: other limits give the same message
        if (threads_refused(case.crash) or 0) > 0:
            return POSSIBLE
        return PROVEN if budget.left < 4 * THREAD_STACK else STRONG if case.crash.method == "status" else POSSIBLE
    if case.said("failed to map segment"):
        return PROVEN
    used = budget.used / budget.limit
    near = used >= NEARLY_USED or budget.left < 64 * MIB
    return PROVEN if near else STRONG if case.crash.method == "status" or used > 1 / 2 else POSSIBLE
