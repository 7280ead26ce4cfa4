"""An op that computes and will not end: what it was given explains it."""

from __future__ import annotations

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.explained import Explained, explained
from faultlens.diagnosis.evidence.standing import Standing


def endless_op(case: Case, found: Standing) -> Explained | None:
    """Loops that sample or converge never come to an end over numbers that are none."""
    if found.state != "computing" or found.process is not case.crash or case.kernel is None:
        return None
    return explained(case, "hang")
