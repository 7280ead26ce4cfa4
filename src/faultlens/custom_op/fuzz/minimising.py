"""Makes the input that showed something as small as it can be while it still does, and proves it in a new Python."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from faultlens.custom_op.fuzz import wire
from faultlens.custom_op.fuzz.script import script_of
from faultlens.custom_op.fuzz.session import Modules, Outcome, Session, Setup
from faultlens.custom_op.fuzz.suspects import Suspect, key_of_crash, leaves_its_block, suspects_of
from faultlens.custom_op.fuzz.vast import modest, overflowing
from faultlens.guard_alloc.hunting import HuntOptions
from faultlens.op_model import shrink_op
from faultlens.op_model.files import Files
from faultlens.op_model.op_call import Call, CannotCallError
from faultlens.records.crash import Crash
from faultlens.sandbox.trial.trial import Bounds, Surroundings, captured

SECONDS = 15.0  # for making one input smaller
HANG_SECONDS = 2.0  # that count as one while a hang is made smaller
PROOF_SECONDS, HANG_PROOF_SECONDS = 90.0, 20.0
REPEATS = 20
TURNS, GUARDED_TURNS = 4, 16
MOST_BEFORE = 8  # calls before it, in a script
BY_CHANCE = ("threads-differ", "differs", "varies-when-large")  # shown again by chance only
AT_ONCE = ("threads", "dataset")  # which thread comes first is chance


class Smallest(NamedTuple):
    suspect: Suspect
    before: tuple[Call, ...] = ()  # calls without which it does not show
    again: bool = True  # it was seen a second time
    overflow: str | None = None  # sizes whose product does not fit in 32 bits, where that is the reason


class Proof(NamedTuple):
    """The script, and how a new Python ended that ran it."""

    files: Files
    crash: Crash | None = None  # None: it did not end the same way
    fenced: bool = False  # only with the fence
    ran: bool = True  # False: there was no time for it


class Minimiser:
    def __init__(self, session: Session, setup: Setup) -> None:
        self._session, self._library, self._limits = session, setup.library, setup.limits
        self._deadline = math.inf

    def smallest(self, suspect: Suspect, seconds: float = SECONDS) -> Smallest:
        """Within about so many seconds."""
        hangs = suspect.rule == "hang"
        self._deadline = time.monotonic() + seconds
        if hangs:
            self._session.be_patient(min(HANG_SECONDS, self._limits.seconds))
        try:
            return self._smallest(suspect)
        finally:
            self._session.be_patient(self._limits.seconds)

    def _smallest(self, suspect: Suspect) -> Smallest:
        seen = self._alone(suspect)
        if seen is None:
            return self._with_others(suspect)
        if suspect.outcome.death and seen.probe != "eager":  # the simpler form may do
            seen = self._alone(seen._replace(probe="eager", options=())) or seen
        found = [seen]

        def still(call: Call) -> bool:
            if time.monotonic() > self._deadline:
                raise shrink_op.OutOfTimeError
            again = self._shows(found[-1]._replace(call=call))
            if again is not None:
                found.append(again)
            return again is not None

        if suspect.rule not in BY_CHANCE:
            shrink_op.shrink(seen.call, still)
        return Smallest(found[-1], overflow=self._overflow(found[-1]))

    def _overflow(self, suspect: Suspect) -> str | None:
        """Sizes whose product no 32-bit integer holds, where it does not die of smaller ones."""
        sizes = overflowing(suspect.call) if suspect.rule == "crash" else None
        control = modest(suspect.call) if sizes else None
        return sizes if control and self._shows(suspect._replace(call=control)) is None else None

    def _alone(self, suspect: Suspect) -> Suspect | None:
        """Seen again in a process of its own; what shows by chance gets a few."""
        for _ in range(3 if suspect.rule in BY_CHANCE or suspect.probe in AT_ONCE else 1):
            self._session.fresh()
            if again := self._shows(suspect):
                return again
        return None

    def _shows(self, suspect: Suspect) -> Suspect | None:
        """Several times where a guard decides: it stands behind most blocks, and before one of four."""
        ask = wire.asked(suspect.call, suspect.probe, **dict(suspect.options))
        times = TURNS if suspect.rule == "crash" and suspect.probe == "eager" else 1
        times = GUARDED_TURNS if leaves_its_block(suspect) else times
        seen = (self._same(suspect, self._session.one(ask)) for _ in range(times))
        return next((each for each in seen if each), None)

    def _same(self, suspect: Suspect, outcome: Outcome) -> Suspect | None:
        found = suspects_of(suspect.call, suspect.probe, dict(suspect.options), outcome, self._library)
        return next((each._replace(times=suspect.times) for each in found if each.key == suspect.key), None)

    # -------------------------------------------------------------------------------- not by itself

    def _with_others(self, suspect: Suspect) -> Smallest:
        """Again and again, or after others: damage and locks that were left behind show later."""
        ask = wire.asked(suspect.call, suspect.probe, **dict(suspect.options))
        if again := self._after(suspect, [ask] * REPEATS):
            own = tuple(wire.understood(each, suspect.call.op, suspect.call.library) for each in [ask] * MOST_BEFORE)
            return Smallest(again._replace(alone=False), own)
        needed = list(suspect.outcome.before)
        in_time = time.monotonic() < self._deadline
        again = self._after(suspect, needed) if needed and in_time else None
        if again is None:
            return Smallest(suspect._replace(alone=False), again=False)
        size = max(len(needed) // 2, 1)
        while size and time.monotonic() < self._deadline:
            for start in range(0, len(needed), size):
                fewer = needed[:start] + needed[start + size :]
                if time.monotonic() < self._deadline and self._after(suspect, fewer):
                    needed = fewer
                    break
            else:
                size //= 2
        calls = tuple(wire.understood(each, suspect.call.op, suspect.call.library) for each in needed[-MOST_BEFORE:])
        return Smallest(again._replace(alone=False), calls)

    def _after(self, suspect: Suspect, before: Sequence[bytes]) -> Suspect | None:
        self._session.fresh()
        ask = wire.asked(suspect.call, suspect.probe, **dict(suspect.options))
        outcomes = self._session.run([*before, ask], to_first_death=True)
        found = (self._same(suspect, outcome) for outcome in outcomes)
        return next((each for each in found if each), None)


# ---------------------------------------------------------------------------------------------- the proof


def written(found: Smallest, modules: Modules, guarded: bool = True) -> Proof | None:
    """Not run. None: it cannot be written as a script. `guarded`: it runs with the guard allocator."""
    try:
        return Proof(script_of(found.suspect, found.before, modules, guarded), ran=False)
    except CannotCallError:
        return None


def proven(found: Smallest, setup: Setup) -> Proof | None:
    """None: it cannot be written as a script."""
    suspect = found.suspect
    if (proof := written(found, setup.modules)) is None:
        return None
    if suspect.outcome.death is None or suspect.rule in ("memory", "closes-descriptors"):
        return proof._replace(ran=True)
    seconds = HANG_PROOF_SECONDS if suspect.rule == "hang" else PROOF_SECONDS
    bounds = Bounds(seconds, setup.limits.memory + (3 << 30))
    for with_fence in (False, True) if setup.fenced and suspect.rule == "crash" else (False,):
        hunt = HuntOptions(tensors=True) if with_fence else None
        tried = written(found, setup.modules, with_fence) or proof
        crash = captured(tried.files, Surroundings(setup.python, hunt=hunt), bounds)
        if _same_end(suspect, crash, setup.library):
            return Proof(tried.files, crash, with_fence)
    return proof._replace(ran=True)


def _same_end(suspect: Suspect, crash: Crash, library: Path) -> bool:
    if suspect.rule == "hang":
        return crash.was_running
    if suspect.rule == "exits":
        return crash.fault is None and crash.outcome.kind in ("exit", "ok")
    return crash.fault is not None and key_of_crash(crash, library) == suspect.key[1:]
