"""How sure a verdict is: what its rule found, as a probability that was fitted to crashes whose cause is known.

A rule claims how strong its findings are; the model says how often such claims come true. It is a logistic one over the
few facts below, each of which moves it in one direction only (confidence.json, made by tools/fit_confidence.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from faultlens.diagnosis.causes.base import Cause, Finding
from faultlens.diagnosis.evidence.case import Case

AGAINST = 0.15  # what a fact that does not fit costs
NEARLY = 0.1  # a rival that is this much weaker explains the facts nearly as well
LEAST, MOST = 0.05, 0.98  # nothing is certain
MOST_CONTESTED = 0.8  # least of all where two explain the same facts
WITNESSES = 3  # more than this add nothing
# Where and how the process died: what the facts at the place of death say is often the last link of a longer chain.
PLACE_OF_DEATH = {"siginfo", "instruction", "native stack", "stack", "registers", "wait status", "agent", "traceback"}

FORESEEN = "faultlens doctor"  # in the environment, before the crash: it did not see it


class Model(msgspec.Struct, frozen=True):
    intercept: float
    weights: dict[str, float]


def claimed(found: Finding) -> float:
    """What the rule claims, less what does not fit."""
    return max(LEAST, found.strength - AGAINST * len(found.against))


def rival_of(ranked: Sequence[tuple[Cause, Finding]]) -> tuple[Cause, Finding] | None:
    """The next best, where it explains the facts nearly as well as the first."""
    best = claimed(ranked[0][1])
    return next((pair for pair in ranked[1:] if claimed(pair[1]) > best - NEARLY), None)


def features(case: Case, ranked: Sequence[tuple[Cause, Finding]]) -> dict[str, float]:
    """What the first of the ranked findings rests on."""
    _, found = ranked[0]
    sources = {fact.source for fact in found.evidence if not fact.source.startswith(FORESEEN)}
    return {
        "claim": _log_odds(min(claimed(found), MOST)),
        "doubted": float(bool(found.against)),
        "contested": float(rival_of(ranked) is not None),
        "general": float(found.general),
        "proved": float(found.by_fence or found.by_stack),
        "witnesses": float(min(len(sources - PLACE_OF_DEATH), WITNESSES)),
        "op known": float(found.op is not None),
        "line known": float((found.location or case.location) is not None),
        "seen dying": float(case.crash.method != "status"),
    }


def probability(facts: Mapping[str, float], model: Model | None = None) -> float:
    fitted = model or _fitted()
    total = fitted.intercept + sum(fitted.weights.get(name, 0.0) * value for name, value in facts.items())
    most = MOST_CONTESTED if facts.get("contested") else MOST
    return min(max((1 + math.tanh(total / 2)) / 2, LEAST), most)  # the logistic function


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share))


@cache
def _fitted() -> Model:
    data = resources.files(__package__).joinpath("confidence.json").read_bytes()
    return msgspec.json.decode(data, type=Model)
