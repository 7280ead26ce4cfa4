"""One report that is worked on: what is wanted, what was found, and the Pythons that were started for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Literal, NamedTuple, TypeVar

from faultlens.diagnosis.signature import Signature
from faultlens.op_model.files import SCRIPT, Files
from faultlens.op_model.shrink_op import OutOfTimeError
from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Reproducer
from faultlens.sandbox.guest import confinement
from faultlens.sandbox.trial.trial import Bounds, Surroundings, WarmTrials, default_bounds

PATIENCE_S = 20.0  # on top of what the program took
LONGEST_S = 300.0

Candidate = TypeVar("Candidate")
Tell = Callable[[str], None]  # what is being done, for the screen
MayRun = Callable[[str, str], None]  # (what, its text): raises FaultlensError if it may not be run


class NotReproducedError(Exception):
    """There is no reproducer; the text says why in a sentence."""


class Options(NamedTuple):
    python: str | None = None
    seconds: float = 60.0  # for shrinking
    own: bool = False  # nobody else can have written the report; else all of this runs inside the sandbox
    of_child: bool = False  # not the program itself died, but a process that it had started


class Found(NamedTuple):
    kind: Literal["op", "script"]
    name: str  # of the op or of the script
    files: Files
    signature: Signature
    runs: int = 0
    same: int = 0
    proof: Crash | None = None  # the last of those runs that died the same way

    def record(self) -> Reproducer:
        return Reproducer(
            kind=self.kind,
            script=self.files[SCRIPT].decode(),
            files={name: data for name, data in self.files.items() if name != SCRIPT},
            runs=self.runs,
            same=self.same,
            signature=str(self.signature),
            not_held=confinement.available().not_held(),
        )


class Task:
    """One report that is worked on, and the Pythons that were started for it."""

    def __init__(
        self, crash: Crash, wanted: Signature, surroundings: Surroundings, options: Options, may_run: MayRun, tell: Tell
    ) -> None:
        self.crash = crash
        self.wanted = wanted
        self.surroundings = surroundings
        self.options = options
        self.may_run = may_run
        self.tell = tell
        self._servers: dict[tuple[str, ...], WarmTrials] = {}

    def __enter__(self) -> Task:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.close()

    def trials(self, modules: tuple[str, ...]) -> WarmTrials:
        if modules not in self._servers:
            self.tell(f"starting {self.surroundings.python}" + (f" with {modules[-1]}" if modules else ""))
            self._servers[modules] = WarmTrials(self.surroundings, modules)
        return self._servers[modules]

    def patient_bounds(self) -> Bounds:
        """Time enough for the whole program."""
        return default_bounds(min(2 * (self.crash.seconds or 10.0) + PATIENCE_S, LONGEST_S))


class Kept(Generic[Candidate]):
    """Asks whether a candidate still dies the same way, for as long as there is time, and remembers those that do."""

    def __init__(self, task: Task, first: Candidate, test: Callable[[Candidate], bool]) -> None:
        self._task = task
        self._test = test
        self._kept = [first]
        self._trials = 0
        self._deadline = time.monotonic() + task.options.seconds

    def check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfTimeError

    def __call__(self, candidate: Candidate) -> bool:
        self.check_time()
        self._trials += 1
        self._task.tell(f"shrinking, trial {self._trials}, {len(self._kept) - 1} steps")
        if not self._test(candidate):
            return False
        self._kept.append(candidate)
        return True

    def best_first(self) -> list[Candidate]:
        """The smallest, then larger ones: what died here by chance may not die when it is started anew."""
        last = len(self._kept) - 1
        return [self._kept[index] for index in dict.fromkeys((last, last * 3 // 4, last // 2, last // 4, 0))]
