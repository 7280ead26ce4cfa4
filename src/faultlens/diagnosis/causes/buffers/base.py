"""What the causes of Python-side memory share: who only carried out what Python asked for, and what the sources say."""

from __future__ import annotations

from msgspec.structs import replace

from faultlens.diagnosis.causes.base import Cause, Finding, evidence, join
from faultlens.diagnosis.evidence import accesses, fenced, foreign_calls, native_code
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use
from faultlens.records.crash import FencedBlock
from faultlens.records.diagnosis import Evidence, Fix


class BufferCause(Cause):
    """Memory whose address, size or lifetime was handled wrongly from Python."""

    def found(
        self, case: Case, strength: float, title: str, *facts: tuple[str, str] | Evidence | None, fixes: tuple[Fix, ...]
    ) -> Finding:
        return Finding(
            strength=strength,
            title=title,
            evidence=join(case.fault_evidence, evidence(*facts)),
            fixes=fixes,
        )


def by_fence(found: Finding, block: FencedBlock) -> Finding:
    """With what the fence knows of the block."""
    return replace(found, by_fence=True, evidence=join(found.evidence, evidence(*fenced.facts_of(block))))


def carried_out(case: Case) -> bool:
    """The code that died only used the memory it was given: NumPy, TensorFlow, libc, or a function called by ctypes."""
    if native_code.suspect(case) is None:
        return True
    fault = case.fault
    if fault is not None and accesses.freed_link(case.crash, fault):
        return False  # the pointer was read from freed memory, not handed in
    return foreign_calls.handed_in(case) is not None


def written(use: Use | None, what: str) -> tuple[str, str] | None:
    """A line of the sources as evidence."""
    return (f"{use.place}: {use.name} {what}", "source") if use else None
