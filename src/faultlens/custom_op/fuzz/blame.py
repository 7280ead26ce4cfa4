"""Is it the op's fault? Where its code is not on the stack, the same input is given to TensorFlow's own identity."""

from __future__ import annotations

from pathlib import Path

from faultlens.custom_op.fuzz import wire
from faultlens.custom_op.fuzz.session import Session
from faultlens.custom_op.fuzz.suspects import Suspect, frame_in, wants_alignment

CONTROL = "control: identity"


def is_to_blame(suspect: Suspect, session: Session, library: Path) -> bool:
    death = suspect.outcome.death
    if death is None:
        return True
    if wants_alignment(death.crash):
        return False  # no op of TensorFlow's own takes such memory
    if death.crash and death.crash.fault and frame_in(death.crash, library):
        return True
    session.fresh()
    options = {**dict(suspect.options), "function": CONTROL}
    control = session.one(wire.asked(suspect.call, suspect.probe, **options))
    session.fresh()
    return control.death is None
