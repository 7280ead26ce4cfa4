"""Runs all causes over a crash, ranks what they found, and says what was ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.diagnosis import confidence
from faultlens.diagnosis.causes import catalogue
from faultlens.diagnosis.causes.base import PROVEN, Cause, Finding
from faultlens.diagnosis.causes.next_hunt import hunt_further
from faultlens.diagnosis.confidence import claimed
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.diagnosis.evidence.naming import named_by_user
from faultlens.records import finding
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import UNKNOWN, Diagnosis, Evidence, Fix, RuledOut

UNKNOWN_BELOW = 0.4  # who claims less than this gives no verdict
CONTESTED = 0.08  # what a rival that is nearly as strong takes from a claim
EVEN = 0.5  # two that explain the facts equally well
GUESS = 0.3
FORESEEN = 0.1  # what it adds that the doctor, who did not see the crash, finds its cause in the environment
MAX_DIAGNOSES = 5
MEMORY_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGTRAP")  # what damaged memory ends in


class Verdict(NamedTuple):
    diagnoses: tuple[Diagnosis, ...]  # the most likely first; empty where there is nothing to explain
    ruled_out: tuple[RuledOut, ...]


def diagnose(crash: Crash, foreseen: Sequence[finding.Finding] = ()) -> Verdict:
    """A pure function of the record: the same verdict from a stored report as from the dead process.

    `foreseen` is what the doctor found in the environment of the program."""
    case = Case(subject_of(crash))
    ranked = findings(case, catalogue(), foreseen)
    diagnoses = _weighed(case, ranked[:MAX_DIAGNOSES])
    if _needs_explaining(case.crash) and not decides(ranked):
        diagnoses.insert(0, _unknown(case, foreseen))
    named = {cause.slug for cause, _ in ranked}
    ruled_out = [
        RuledOut(cause=cause.slug, because=because)
        for cause in catalogue()
        if cause.slug not in named and (because := cause.rule_out(case)) is not None
    ]
    return Verdict(tuple(diagnoses), tuple(ruled_out) if diagnoses else ())


def findings(
    case: Case, causes: Sequence[Cause], foreseen: Sequence[finding.Finding] = ()
) -> list[tuple[Cause, Finding]]:
    """What these causes find in a crash, the most likely first."""
    found = _behind_proof(_found(case, causes))
    supported = [(cause, _supported(cause, each, foreseen)) for cause, each in found]
    return _without_general(sorted(supported, key=_rank))


def decides(ranked: Sequence[tuple[Cause, Finding]]) -> bool:
    """Is the first of them a verdict?"""
    if not ranked:
        return False
    return round(claimed(ranked[0][1]) - (CONTESTED if confidence.rival_of(ranked) else 0), 2) >= UNKNOWN_BELOW


def _found(case: Case, causes: Sequence[Cause]) -> list[tuple[Cause, Finding]]:
    """Words that were said decide where nothing else does."""
    findings = [(cause, found) for cause in causes if (found := cause.examine(case)) is not None]
    if any(claimed(found) >= UNKNOWN_BELOW for _, found in findings) and not case.only_words:
        return findings
    named = {cause.slug for cause, _ in findings}
    read = [(cause, found) for cause in causes if (found := cause.read(case)) is not None]
    return findings + [(cause, found) for cause, found in read if cause.slug not in named]


def _behind_proof(findings: list[tuple[Cause, Finding]]) -> list[tuple[Cause, Finding]]:
    """Where the fence caught somebody, or the stack shows who ended it, any other explanation is a guess."""
    if not any(found.by_fence or found.by_stack for _, found in findings):
        return findings
    return [
        (cause, found if found.by_fence or found.by_stack else replace(found, strength=min(found.strength, GUESS)))
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


def _rank(pair: tuple[Cause, Finding]) -> tuple[float, int, str]:
    """What is equally strong is ranked by how many facts it rests on."""
    cause, found = pair
    return -round(claimed(found), 2), -len(set(found.evidence)), cause.code


def _without_general(ranked: list[tuple[Cause, Finding]]) -> list[tuple[Cause, Finding]]:
    """What happened goes without saying where a cause is named that says why."""
    specific = [pair for pair in ranked if not pair[1].general]
    return specific if any(claimed(found) >= UNKNOWN_BELOW for _, found in specific) else ranked


def _weighed(case: Case, ranked: Sequence[tuple[Cause, Finding]]) -> list[Diagnosis]:
    """How sure each is: less where another explains the facts nearly as well; the others no more than is left."""
    if not ranked:
        return []
    (cause, best), *others = ranked
    rival = confidence.rival_of(ranked)
    undecided = rival is not None and _rank((cause, best))[:2] == _rank(rival)[:2]
    sure = confidence.probability(confidence.features(case, ranked))
    sure = min(sure, EVEN) if undecided else sure
    if rival is not None:
        best = _with_rival(cause, best, *rival, undecided)
    left = min(EVEN if undecided else 1 - sure, sure)
    rest = [_diagnosis(case, other, found, min(claimed(found), left)) for other, found in others]
    return [_diagnosis(case, cause, best, sure), *rest]


def _with_rival(cause: Cause, found: Finding, rival: Cause, other: Finding, undecided: bool) -> Finding:
    """Says that another explanation remains, and what would decide between the two."""
    how = "as well" if undecided else "nearly as well"
    fact = Evidence(fact=f"{rival.code} {rival.slug} explains the facts {how}: {other.title}", source="rival")
    apart = Fix(
        title=f"find out whether it is {cause.slug} or {rival.slug}",
        detail=f"{cause.slug}: {cause.proof}. {rival.slug}: {rival.proof}.",
    )
    return replace(found, evidence=(*found.evidence, fact), fixes=(*found.fixes, apart))


def _diagnosis(case: Case, cause: Cause, found: Finding, sure: float) -> Diagnosis:
    return Diagnosis(
        cause=cause.slug,
        code=cause.code,
        confidence=round(sure, 2),
        title=found.title,
        location=found.location or case.location,
        called_from=case.called_from if found.location is None else None,
        op=found.op or named_by_user(case, found.location),
        evidence=(*found.evidence, *(Evidence(fact=f"does not fit: {fact}", source="doubt") for fact in found.against)),
        fixes=found.fixes,
    )


def _needs_explaining(crash: Crash) -> bool:
    return crash.outcome.kind == "signal" or crash.was_running or crash.fault is not None


def _unknown(case: Case, foreseen: Sequence[finding.Finding]) -> Diagnosis:
    """An honest answer, with the experiment that would decide."""
    fixes = [fix for each in foreseen for fix in each.fixes[:1]]
    if case.crash.method == "status":
        detail = "only the exit status was seen"
        fixes.append(Fix(title="run it again under `faultlens run`", detail=detail, grade="safe"))
    if case.signal in MEMORY_SIGNALS:
        fixes.extend(hunt_further(case))
    if not fixes:
        fixes.append(Fix(title="look at all that was recorded", detail="faultlens show -v", grade="safe"))
    return Diagnosis(
        cause=UNKNOWN,
        code="FL000",
        confidence=0.0,
        title="the recorded facts do not decide what caused this",
        location=case.location,
        called_from=case.called_from,
        op=case.op or named_by_user(case, None),
        evidence=(
            *(case.fault_evidence or (Evidence(fact=f"ended as {case.crash.outcome.kind}", source="wait status"),)),
            *map(_told, foreseen),
        ),
        fixes=tuple(fixes),
    )
