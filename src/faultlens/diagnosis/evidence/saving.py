"""Whether a save was under way at the end, and what it left: a reason to save in another way."""

from __future__ import annotations

from pathlib import PurePosixPath

from faultlens.diagnosis.evidence.case import Case
from faultlens.records.crash import Saving
from faultlens.records.diagnosis import Evidence, Fix
from faultlens.text.safe import one_line


def interrupted(case: Case) -> Saving | None:
    """A save by Keras or TensorFlow itself: those of `faultlens.save` lose nothing."""
    saving = case.crash.saving
    return saving if saving is not None and not saving.kept else None


def left_behind(case: Case) -> tuple[Evidence, ...]:
    """What proves it."""
    saving = interrupted(case)
    if saving is None:
        return ()
    name = _name(saving)
    damage = next((save.damage for save in saving.saves if save.current and save.whole is False), None)
    facts = [Evidence(fact=f"it was saving {name}", source="progress")] if saving.under_way else []
    if damage:
        facts.append(Evidence(fact=one_line(f"{name} is damaged: {damage}", 240), source="saves"))
    return tuple(facts)


def save_with_faultlens(case: Case, besides: str = "") -> tuple[Fix, ...]:
    """Only where a save was under way. `besides`: another reason for it."""
    saving = interrupted(case)
    if saving is None:
        return ()
    detail = f"{besides}the previous save stays until the new one is written and proved whole"
    return (Fix(title=f'save with faultlens.save(model, "{_name(saving)}")', detail=detail, grade="safe"),)


def _name(saving: Saving) -> str:
    return one_line(PurePosixPath(saving.path).name, 80)
