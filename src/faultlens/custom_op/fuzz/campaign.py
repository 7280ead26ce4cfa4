"""Tries an op with input after input, as long as there is time, and keeps what is suspicious.

First every combination of ranks, to learn what the op accepts; then all that differ from that in one thing; then, from
hypothesis, what differs in several. What is accepted is also tried in other forms."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.custom_op.fuzz import hints, plans, wire
from faultlens.custom_op.fuzz.changes import variants
from faultlens.custom_op.fuzz.pace import Pace
from faultlens.custom_op.fuzz.plans import Plan
from faultlens.custom_op.fuzz.relations import ways
from faultlens.custom_op.fuzz.session import Outcome, Reference, Session
from faultlens.custom_op.fuzz.suspects import Key, Suspect, suspects_of
from faultlens.custom_op.fuzz.tested import OpUnderTest
from faultlens.custom_op.fuzz.vast import vast
from faultlens.op_model.op_call import Call

SEEDS = 8  # accepted outlines, all of whose variants are tried
THOROUGH = 4  # accepted inputs that are tried in all forms
NOW_AND_THEN = {"repeat": 2, "graph": 12}  # one of so many accepted inputs
MOST_WAYS = 40  # refused inputs, from which a way in is looked for
BEFORE_FORMS = 0.5  # of the time
WAY_IN, FURTHER = 0.4, 0.2  # of the time, for that; where something is accepted already
_NUMBERS = re.compile(r"[-\d\[\],. ]+")
MOST_REFUSED = 3
WRONG_RESULT = "wrong-result"  # all else about such an input is still looked at
PATIENCE = 3.0
VAST, VAST_SECONDS = 0.2, 1.0  # of the time; for one of them
OTHERS, SOME = 3, 10_000  # calls beside, with about so many elements: long enough to meet
FEW, MANY = 1000, 100_000  # elements
FORMS = (
    *("repeat", "graph", "leak", "threads", "dataset", "vectorized", "gradient", "compiled", "same tensor"),
    "unaligned",
)
FEWER_FORMS = ("repeat", "graph", "threads", "gradient")


class Effort(NamedTuple):
    seconds: float = 30.0
    inputs: int | None = None
    seed: int = 0
    reference: Reference | None = None


class Tried(NamedTuple):
    """What an op was tried with, to be told."""

    inputs: int
    accepted: int
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    forms: tuple[str, ...]


class Campaign:
    def __init__(
        self, op: OpUnderTest, session: Session, library: Path, effort: Effort, tell: Callable[[str], None]
    ) -> None:
        self._op, self._session, self._library = op, session, library
        self.effort, self._tell = effort, tell
        self._pace = Pace(effort.seconds, session.limits.seconds)
        self._known: set[Plan] = set()
        self.accepted: list[Plan] = []
        self._refused: dict[str, list[Plan]] = {}  # by the words of the refusal, without their numbers
        self.suspects: dict[Key, Suspect] = {}
        self.refusals: dict[str, str] = {}  # unusual classes of exceptions -> words
        self.graphs: list[Outcome] = []
        self.steady: bool | None = False if op.stateful else None
        self.inputs = self.returned = 0  # all, and those for which the op gave a result
        self.unreferenced: list[str] = []  # why the reference gave no result for an input
        self._asked_for: dict[Plan, str] = {}  # by those that came furthest: the words of the refusal
        self._forms: dict[str, None] = {}
        self._dtypes: dict[str, None] = {}
        self._ranks: set[int] = set()

    def run(self) -> None:
        self._try_all(plans.first(self._op))
        self._find_the_way_in()
        self._try_all(plans.special(self._op))
        if not any(_elements(plan) > 1 for plan in self.accepted):
            self._try_all(plans.narrow(self._op))
            self._find_the_way_in()
        seeds = self._seeds()
        self._try_all(variants(self._op, seeds[0]), BEFORE_FORMS)
        for number, plan in enumerate(seeds):
            if number < THOROUGH and plan in self.accepted:
                self._all_forms(plan, FORMS if number == 0 else FEWER_FORMS)
            if number == 0:
                self._refused_often()
                self._with_vast_sizes(plan)
            scaled = plans.scaled(plan)
            self._try_all([scaled])
            for each in (scaled, plan) if scaled in self.accepted else (plan, scaled):
                self._try_all(variants(self._op, each))
            if number == 0:
                self._with_many_elements()
        self._search()

    def tried(self) -> Tried:
        ranks = tuple(sorted(self._ranks))
        return Tried(self.inputs, self.returned, tuple(self._dtypes), ranks, tuple(self._forms))

    @property
    def is_over(self) -> bool:
        if self.effort.inputs is not None and self.inputs >= self.effort.inputs:
            return True
        return self._pace.is_over

    @property
    def stopped(self) -> str:
        return self._pace.stopped

    def _find_the_way_in(self) -> None:
        """An input that is refused with other words has come further, and is changed on."""
        looked_at: set[str] = set()
        while not self.is_over and len(looked_at) < MOST_WAYS:
            enough = any(_elements(plan) > 1 for plan in self.accepted)
            new = [words for words in reversed(self._refused) if words not in looked_at]
            if not new or self._pace.share_used() > (FURTHER if enough else WAY_IN):
                return
            looked_at.add(new[0])
            plan = self._refused[new[0]][0]
            self._try_all(ways(self._op, plan, self._asked_for.get(plan, "")))

    # ------------------------------------------------------------------------------------------ one after the other

    def _try_all(self, outlines: Iterable[Plan], share: float = 1.0) -> None:
        """Until this share of the time is used."""
        fresh = (each for each in outlines if each not in self._known and not self._pace.is_hopeless(_ranks(each)))
        while (
            not self.is_over and self._pace.share_used() < share and (batch := list(islice(fresh, self._pace.at_once)))
        ):
            self.try_batch(batch)

    def try_batch(self, batch: list[Plan]) -> None:
        self._known.update(batch)
        if self.effort.inputs is not None:
            batch = batch[: max(self.effort.inputs - self.inputs, 0)]
        pairs = [(plan, plans.call_of(self._op, plan)) for plan in batch]
        pairs = [(plan, call) for plan, call in pairs if not plans.has_many_strings(call)]
        options = {"reference": self.effort.reference} if self.effort.reference else {}
        while pairs and not self.is_over:
            start = time.monotonic()
            self._session.be_patient(self._pace.patience())
            asks = [wire.asked(call, "eager", **options) for _, call in pairs]
            outcomes = self._session.run(asks, self._pace.deadline)
            self._pace.took(time.monotonic() - start)
            for (plan, call), outcome in zip(pairs, outcomes, strict=False):  # fewer, after one that hangs
                self._learn(plan, call, options, outcome)
            rest = pairs[len(outcomes) :]
            pairs = [(plan, call) for plan, call in rest if not self._pace.is_hopeless(_ranks(plan))]

    def _learn(self, plan: Plan, call: Call, options: dict[str, Any], outcome: Outcome) -> None:
        self._seen(call, "eager", options, outcome)
        self._pace.seen(_ranks(plan), outcome.death, outcome.accepted)
        if "error" in outcome.told:
            words = str(outcome.told["words"])
            self._refused.setdefault(_NUMBERS.sub("", words), []).append(plan)
            self._asked_for.setdefault(plan, words)
        self.returned += outcome.accepted
        if why := outcome.told.get("unreferenced"):
            self.unreferenced.append(why)
        if outcome.accepted and all(rule == WRONG_RESULT for rule, _ in outcome.problems):
            self.accepted.append(plan)
            for probe, every in NOW_AND_THEN.items():
                if len(self.accepted) % every == 0 and _elements(plan) <= MANY and not self.is_over:
                    self._probe(call, probe)

    def _probe(self, call: Call, probe: str, **options: Any) -> Outcome:
        options = {**options, "steady": self.steady is not False}
        self._session.be_patient(self._pace.patience(PATIENCE))  # it takes many calls
        outcome = self._session.one(wire.asked(call, probe, **options))
        self._pace.seen(probe, outcome.death, outcome.accepted)
        self._seen(call, probe, options, outcome)
        if probe == "repeat" and outcome.accepted:
            self._compare(call, options, outcome)
        if probe == "graph" and outcome.accepted:
            self.graphs.append(outcome)
        return outcome

    def _compare(self, call: Call, options: dict[str, Any], outcome: Outcome) -> None:
        """An op whose results vary for small inputs may be meant to; one that varies with many elements only is not."""
        small = sum(math.prod(array.shape) for array in call.arrays()) < FEW
        if outcome.told["steady"]:
            self.steady = True if self.steady is None else self.steady
        elif small or self.steady is None:
            self.steady = False
        elif self.steady and outcome.told["varies"]:
            problems = [["varies-when-large", outcome.told["varies"]]]
            self._suspect(call, "repeat", options, outcome._replace(told={**outcome.told, "problems": problems}))

    def _seen(self, call: Call, probe: str, options: dict[str, Any], outcome: Outcome) -> None:
        self.inputs += 1
        self._tell(f"{self._op.name}: {self.inputs:,} inputs, {len(self.suspects)} suspicious")
        self._forms.setdefault(probe)
        for array in call.arrays():
            self._dtypes.setdefault(array.dtype)
            self._ranks.add(len(array.shape))
        error = outcome.told.get("error")
        if error in ("InternalError", "UnknownError"):
            self.refusals.setdefault(error, str(outcome.told.get("words")))
        self._suspect(call, probe, options, outcome)

    def _suspect(self, call: Call, probe: str, options: dict[str, Any], outcome: Outcome) -> None:
        for suspect in suspects_of(call, probe, options, outcome, self._library):
            before = self.suspects.get(suspect.key)
            if before is None:
                self.suspects[suspect.key] = suspect
            else:
                self.suspects[suspect.key] = before._replace(times=before.times + 1)

    # ------------------------------------------------------------------------------------------------ what is accepted

    def _seeds(self) -> list[Plan]:
        """One for each combination of ranks, those with telling contents first; what is refused is tried as well."""
        by_ranks: dict[Any, Plan] = {}
        order = {"ramp": 0, "ones": 1, "zeros": 2}
        for plan in sorted(self.accepted, key=lambda plan: order.get(str(_content(plan)), 3)):
            sizes = {size for slots in plan.slots for slot in slots for size in slot.shape}
            if sizes <= {plans.SIDE, *plans.NARROW, *self._numbers_named()}:
                by_ranks.setdefault(_ranks(plan), plan)
        found = sorted(by_ranks.values(), key=lambda plan: sum(map(sum, _ranks(plan))))
        middle = [plan for plan in found if all(rank for ranks in _ranks(plan) for rank in ranks)]
        chosen = list(dict.fromkeys((*middle[:2], *found)))[:SEEDS]
        return chosen or [plans.plainest(self._op)]

    def _numbers_named(self) -> set[int]:
        """Sizes that refusals have asked for."""
        return {number for words in self._asked_for.values() for number in hints.numbers(words)}

    def _larger(self) -> list[Plan]:
        """One accepted with some thousand elements, and the one with most."""
        sized = sorted((plan for plan in self.accepted if _elements(plan) >= FEW), key=_elements)
        return list(dict.fromkeys((*sized[:1], *sized[-1:])))

    def _all_forms(self, plan: Plan, forms: Sequence[str]) -> None:
        call = plans.call_of(self._op, plan)
        for probe in forms:
            if self.is_over:
                return
            if probe == "threads":
                others = [wire.plain(plans.call_of(self._op, each)) for each in self._others(plan)]
                self._probe(call, probe, others=others)
            elif probe == "same tensor":
                self._probe(call, "eager", aliased=True)
            elif probe == "unaligned":
                self._probe(call, "eager", unaligned=True)
            elif probe not in self._impossible:
                self._probe(call, probe)

    @property
    def _impossible(self) -> list[str]:
        kinds = (("gradient", self._op.gradient), ("compiled", self._op.has_xla_kernel))
        return [probe for probe, possible in kinds if not possible]

    def _refused_often(self) -> None:
        """What is allocated before an input is refused may stay behind."""
        for refused in list(self._refused.values())[-MOST_REFUSED:]:
            calls = [plans.call_of(self._op, plan) for plan in refused]
            light = (each for each in calls if plans.weight(each) < 1 << 20)
            heaviest = max(light, key=lambda call: plans.weight(call) + plans.largest_number(call), default=None)
            if heaviest and not self.is_over:
                self._probe(heaviest, "leak")

    def _with_many_elements(self) -> None:
        """Threads, of others and of the op's own, meet in large tensors."""
        larger = self._larger()
        for plan in larger[:2]:
            self._all_forms(plan, ("threads", "repeat"))

    def _with_vast_sizes(self, plan: Plan) -> None:
        """What takes long, or much, has a right to: only deaths count."""
        until = time.monotonic() + VAST * self.effort.seconds
        for each in vast(plan):
            if self.is_over or time.monotonic() > until:
                return
            call = plans.call_of(self._op, each)
            if plans.has_many_strings(call):
                continue
            self._session.be_patient(min(VAST_SECONDS, self._pace.patience()))
            room = {"room": self._session.limits.memory // 2}
            outcome = self._session.one(wire.asked(call, "eager", **room))
            if outcome.death is None or outcome.death.kind == "deadly":
                self._seen(call, "eager", room, outcome)

    def _others(self, plan: Plan) -> list[Plan]:
        """Of the same types, but of other sizes: what threads share by mistake shows with them."""
        alike = [each for each in self.accepted if each.types == plan.types and each != plan]
        return sorted(alike, key=lambda each: abs(math.log(1 + _elements(each)) - math.log(SOME)))[:OTHERS]

    # ----------------------------------------------------------------------------------------------- several changes

    def _search(self) -> None:
        from faultlens.custom_op.fuzz.search import search

        search(self._op, self)

    @property
    def seed(self) -> int:
        return self.effort.seed


def _ranks(plan: Plan) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(len(slot.shape) for slot in slots) for slots in plan.slots)


def _content(plan: Plan) -> Any:
    return next((slot.content for slots in plan.slots for slot in slots), "ones")


def _elements(plan: Plan) -> int:
    return sum(math.prod(slot.shape) for slots in plan.slots for slot in slots)
