"""Runs a model for a few steps, with batches of several sizes, as far as there is room for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from faultlens.errors import FaultlensError
from faultlens.forecasting import crashed
from faultlens.forecasting.account import Account, Options
from faultlens.forecasting.estimate import Series, estimate
from faultlens.forecasting.runs import Ran, Runs
from faultlens.forecasting.subject import Subject
from faultlens.records.forecast import Point
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words

SMALLER = 4  # the first run has this part of the batch
MANY_STEPS, FEW_STEPS, INFERENCE_STEPS = 16, 10, 2
PHASE_S = 60.0  # for the steps of one phase …
RUN_S = 600.0  # … and for all of one run, building and tracing included
CAUTION = 1.25  # a run is only tried if this much more than is expected of it would be there
FAULTS = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")
Tell = Callable[[str], None]


class Measuring:
    """Runs of growing size, each only where the ones before say that there is room for it."""

    def __init__(self, subject: Subject, options: Options, memory: int, runs: Runs, tell: Tell) -> None:
        self.subject = subject
        self.options = options
        self._runs = runs
        self._tell = tell
        self.memory = memory
        self.trained: list[Ran] = []
        self.inferred: Ran | None = None
        self.too_much: Ran | None = None
        self.points: list[Point] = []

    # ----------------------------------------------------------------------------------------- the runs

    def train(self) -> None:
        wanted = self.options.batch
        size = max(wanted // SMALLER, 1)
        first = self._training(size, FEW_STEPS if size == wanted else MANY_STEPS, [self.options.save])
        while first.killed == "memory" and size > 1:
            size = max(size // SMALLER, 1)
            first = self._training(size, MANY_STEPS, [self.options.save])
        if first.killed:
            self._give_up(first)
        if size == wanted:
            return
        for larger in (wanted, max(wanted // 2, 1), size * 2):
            if larger > size and self.has_room(larger) and not self._training(larger, FEW_STEPS).killed:
                return
        if size > 1:
            self._training(max(size // 2, 1), FEW_STEPS)

    def infer(self) -> None:
        batch = self.trained[-1].batch
        ran = self._needed(batch, INFERENCE_STEPS, ["predict", "evaluate"], f"inference with a batch of {batch}")
        if ran.result:
            self.inferred = ran
            self._note("inference", ran, "predict")
            self._note("evaluation", ran, "evaluate")

    def has_room(self, batch: int) -> bool:
        if self.too_much is not None and batch >= self.too_much.batch:
            return False
        return estimate(self.series, batch, self.base).high * CAUTION <= self.memory

    def run(self, batch: int, steps: int, phases: list[str], what: str, **more: Any) -> Ran:
        return self._ask({**self._request(batch, steps, phases), **more}, what)

    def _needed(self, batch: int, steps: int, phases: list[str], what: str) -> Ran:
        """A run without which there is no forecast: what it dies of is found out."""
        request = self._request(batch, steps, phases)
        ran = self._ask(request, what)
        if ran.signal not in FAULTS:
            return ran
        what = ran.at or what
        self._tell(f"running {what} once more, to see what it died of")
        again = crashed.Again(request, self.memory, RUN_S, self.subject, self.options.python)
        raise crashed.error_of(ran, what, again)

    def _ask(self, request: dict[str, Any], what: str) -> Ran:
        self._tell(f"measuring {what}")
        ran = self._runs.run(request, self.memory, RUN_S)
        if ran.refused:
            raise FaultlensError(ran.words)
        return ran

    def _request(self, batch: int, steps: int, phases: list[str]) -> dict[str, Any]:
        options, spec = self.options, self.options.spec
        return {
            **self.subject.request,
            "batch": batch,
            "steps": steps,
            "phases": phases,
            "phase_seconds": PHASE_S,
            "optimizer": options.optimizer,
            "spec": {name: list(field) for name, field in spec.fields.items()},
            "pipeline": {} if spec.prefetch is None else {"prefetch": spec.prefetch},
            "data": {"file": options.data.file, "function": options.data.name} if options.data else None,
        }

    def _training(self, batch: int, steps: int, saves: list[str] | None = None) -> Ran:
        ran = self._needed(batch, steps, ["train", *(saves or [])], f"training with a batch of {batch}")
        if ran.result:
            self.trained = sorted([*self.trained, ran], key=lambda each: each.batch)
        elif ran.killed == "memory":
            self.too_much = ran
        elif not ran.killed:
            raise FaultlensError(one_line(ran.words, 600))
        self._note("training", ran, "train")
        return ran

    def _note(self, phase: Any, ran: Ran, key: str) -> None:
        told = ran.result.get(key, {})
        peaks, seconds = told.get("peaks", []), told.get("seconds", [])
        self.points.append(
            Point(
                phase=phase,
                batch=ran.batch,
                steps=len(peaks),
                peak=max(peaks, default=ran.highest),
                seconds_per_step=round(sum(seconds[1:]) / len(seconds[1:]), 4) if len(seconds) > 1 else None,
                stopped=ran.killed,  # type: ignore[arg-type]
            )
        )

    def _give_up(self, ran: Ran) -> None:
        if ran.killed == "time":
            raise FaultlensError(
                f"Building the model and {MANY_STEPS} steps took longer than {RUN_S:g} s.",
                "Is there much to do when the file is imported? Put that under `if __name__ == '__main__':`.",
            )
        raise FaultlensError(
            f"Not even a batch of {ran.batch} fits into the {in_words(self.memory)} that the runs may take:"
            f" it was stopped at {in_words(ran.highest)}.",
            "Make the model smaller, or forecast on a machine with more memory.",
        )

    # ----------------------------------------------------------------------------------- what was measured

    @property
    def series(self) -> list[Series]:
        return [Series(ran.batch, tuple(ran.result["train"]["peaks"])) for ran in self.trained]

    @property
    def base(self) -> int:
        return min(int(ran.result["built"]) for ran in self.trained)

    def account(self) -> Account:
        return Account(
            subject=self.subject.name,
            options=self.options,
            series=self.series,
            base=self.base,
            largest=self.trained[-1].result,
            saves={form: told for ran in self.trained for form, told in ran.result.get("saves", {}).items()},
            inference=self.inferred,
            points=self.points,
            too_much=self.too_much,
        )
