"""Runs all causes over a crash, ranks what they found, and says what was ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultlens import finding
from faultlens.causes import catalogue
from faultlens.causes.base import PROVEN, Cause, Finding
from faultlens.clues.case import Case
from faultlens.clues.children import made_it_fail
from faultlens.crash import Crash
from faultlens.diagnosis import UNKNOWN, Diagnosis, Evidence, Fix, RuledOut

UNKNOWN_BELOW = 0.4  # less than this is no verdict
AGAINST = 0.15  # what a fact that does not fit costs
CONTESTED = 0.08  # what a rival that is nearly as strong costs
NEARLY = 0.1
GUESS = 0.3
FORESEEN = 0.1  # what it adds that the doctor, who did not see the crash, finds its cause in the environment
MAX_DIAGNOSES = 5


class Verdict(NamedTuple):
    diagnoses: tuple[Diagnosis, ...]  # the most likely first; empty where there is nothing to explain
    ruled_out: tuple[RuledOut, ...]


def diagnose(crash: Crash, foreseen: Sequence[finding.Finding] = ()) -> Verdict:
    """A pure function of the record: the same verdict from a stored report as from the dead process.

    `foreseen` is what the doctor found in the environment of the program."""
    case = Case(subject_of(crash))
    findings = _behind_fence([(cause, found) for cause in catalogue() if (found := cause.examine(case)) is not None])
    supported = [(cause, _supported(cause, found, foreseen)) for cause, found in findings]
    ranked = sorted(supported, key=lambda pair: (-_confidence(pair[1]), pair[0].code))
    diagnoses = [_diagnosis(case, cause, found, _contested(found, ranked)) for cause, found in ranked[:MAX_DIAGNOSES]]
    if _needs_explaining(case.crash) and (not diagnoses or diagnoses[0].confidence < UNKNOWN_BELOW):
        diagnoses.insert(0, _unknown(case, foreseen))
    named = {cause.slug for cause, _ in ranked}
    ruled_out = [
        RuledOut(cause=cause.slug, because=because)
        for cause in catalogue()
        if cause.slug not in named and (because := cause.rule_out(case)) is not None
    ]
    return Verdict(tuple(diagnoses), tuple(ruled_out) if diagnoses else ())


def subject_of(crash: Crash) -> Crash:
    """The process to explain: the program, or the child whose crash made it fail."""
    if crash.fault is not None or crash.outcome.kind in ("signal", "hang"):
        return crash
    return next((child for child in crash.children if made_it_fail(child, crash)), crash)


def _behind_fence(findings: list[tuple[Cause, Finding]]) -> list[tuple[Cause, Finding]]:
    """Where the fence caught somebody, what explains the death otherwise is a guess."""
    if not any(found.by_fence for _, found in findings):
        return findings
    return [
        (cause, found if found.by_fence else replace(found, strength=min(found.strength, GUESS)))
        for cause, found in findings
    ]


def _supported(cause: Cause, found: Finding, foreseen: Sequence[finding.Finding]) -> Finding:
    about_it = [each for each in foreseen if cause.slug in each.causes]
    if not about_it:
        return found
    proven = any(each.severity == "error" for each in about_it)
    strength = min(found.strength + FORESEEN, max(PROVEN, found.strength)) if proven else found.strength
    # The same advice twice: the doctor's has the command.
    fixes = {fix.title: fix for fix in (*found.fixes, *(fix for each in about_it for fix in each.fixes))}
    first = tuple(fixes.pop(fix.title) for each in about_it for fix in each.fixes if fix.title in fixes)
    return replace(
        found, strength=strength, evidence=(*found.evidence, *map(_told, about_it)), fixes=(*first, *fixes.values())
    )


def _told(foreseen: finding.Finding) -> Evidence:
    return Evidence(fact=foreseen.title, source=f"faultlens doctor {foreseen.check}")


def _confidence(found: Finding) -> float:
    return max(0.05, found.strength - AGAINST * len(found.against))


def _contested(found: Finding, ranked: Sequence[tuple[Cause, Finding]]) -> float:
    """The confidence, less something if another cause explains the facts nearly as well."""
    own = _confidence(found)
    rivals = [other for _, other in ranked if other is not found and _confidence(other) > own - NEARLY]
    return round(own - (CONTESTED if rivals else 0), 2)


def _diagnosis(case: Case, cause: Cause, found: Finding, confidence: float) -> Diagnosis:
    return Diagnosis(
        cause=cause.slug,
        code=cause.code,
        confidence=confidence,
        title=found.title,
        location=found.location or case.location,
        called_from=case.called_from if found.location is None else None,
        op=found.op,
        evidence=(*found.evidence, *(Evidence(fact=f"does not fit: {fact}", source="doubt") for fact in found.against)),
        fixes=found.fixes,
    )


def _needs_explaining(crash: Crash) -> bool:
    return crash.outcome.kind in ("signal", "hang") or crash.fault is not None


def _unknown(case: Case, foreseen: Sequence[finding.Finding]) -> Diagnosis:
    """An honest answer, with the experiment that would decide."""
    fixes = [fix for each in foreseen for fix in each.fixes[:1]]
    if case.crash.method == "status":
        detail = "only the exit status was seen"
        fixes.append(Fix(title="run it again under `faultlens run`", detail=detail, grade="safe"))
    if case.fault is not None and case.custom_libraries:
        names = ", ".join(path.rpartition("/")[2] for path in case.custom_libraries[:3])
        fixes.append(Fix(title=f"rebuild {names} with -fsanitize=address and run it again"))
    fixes.append(
        Fix(
            title="run it again with glibc's heap checks",
            detail="MALLOC_CHECK_=3 LD_PRELOAD=libc_malloc_debug.so.0 faultlens run …",
            grade="safe",
        )
    )
    return Diagnosis(
        cause=UNKNOWN,
        code="FL000",
        confidence=0.0,
        title="the recorded facts do not decide what caused this",
        location=case.location,
        called_from=case.called_from,
        op=case.op,
        evidence=(
            *(case.fault_evidence or (Evidence(fact=f"ended as {case.crash.outcome.kind}", source="wait status"),)),
            *map(_told, foreseen),
        ),
        fixes=tuple(fixes),
    )
