"""Where ops are tried: a warm Python with the library loaded, which forks processes that may die of an input."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from faultlens import guard_alloc
from faultlens.agent.area import SharedArea
from faultlens.custom_op.fuzz.deaths import Death, GuardedAutopsies
from faultlens.custom_op.fuzz.tested import OpUnderTest, ops_of
from faultlens.errors import FaultlensError
from faultlens.guard_alloc import layout
from faultlens.inspection.siginfo import signal_name
from faultlens.op_model import op_definition
from faultlens.sandbox.guest.board import ITEMS
from faultlens.sandbox.warm import worker
from faultlens.sandbox.warm.autopsy import Autopsies
from faultlens.sandbox.warm.link import Link
from faultlens.sandbox.warm.worker import End, Worker
from faultlens.system.procfs import read_text
from faultlens.text.safe import one_line

SERVER = Path(__file__).parent / "guest" / "server.py"
LOOKS = 60
BUSY_SECONDS, BUSY_SHARE = 0.4, 0.2
# A tensor's memory comes from malloc itself: pools would hide what is done to it.
SETTINGS = {**worker.SETTINGS, "TF_ENABLE_ONEDNN_OPTS": "0", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


class Limits(NamedTuple):
    """Of one input."""

    seconds: float = 10.0
    memory: int = 2 << 30


class Modules(NamedTuple):
    """Of the user, that are imported beside the library: they register gradients."""

    folder: str = ""  # looked in first
    names: tuple[str, ...] = ()


class Reference(NamedTuple):
    """The user's function that gives the right results."""

    folder: str  # looked in first
    module: str
    function: str


class Setup(NamedTuple):
    """What is tried, where and within which limits."""

    library: Path
    python: str
    limits: Limits = Limits()
    fenced: bool = True
    modules: Modules = Modules()
    reference: Reference | None = None


class Outcome(NamedTuple):
    told: Mapping[str, Any]  # by the probe; empty when it died
    death: Death | None = None
    before: tuple[bytes, ...] = ()  # where it died: what its process had tried

    @property
    def accepted(self) -> bool:
        return "ok" in self.told

    @property
    def problems(self) -> Sequence[Sequence[str]]:
        problems: Sequence[Sequence[str]] = self.told.get("problems", ())
        return problems


class Session:
    def __init__(self, setup: Setup, tick: Callable[[], None] = lambda: None) -> None:
        self._data = os.memfd_create("faultlens-inputs", os.MFD_CLOEXEC)
        self.limits = setup.limits
        self._sandbox = _OpWorker(setup, self._data, tick)
        self._history: list[bytes] = []
        try:
            self.ready = self._sandbox.ready()
        except BaseException:
            self.close()
            raise
        self.ops: tuple[OpUnderTest, ...] = ops_of(self.ready.get("ops", ()))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._sandbox.close()
        os.close(self._data)

    @property
    def refused_loading(self) -> str | None:
        """Why the library cannot be loaded."""
        loading = self.ready.get("loading")
        if not loading:
            return None
        if os.WIFSIGNALED(loading["status"]):
            return f"it died by {signal_name(os.WTERMSIG(loading['status']))}"
        return one_line(loading["words"], 600) or "it ended its process"

    @property
    def refused_importing(self) -> str | None:
        """Why the user's modules cannot be imported."""
        said = self.ready.get("importing")
        return None if said is None else one_line(said, 600)

    @property
    def refused_reference(self) -> str | None:
        """Why there is no reference to compare with."""
        said = self.ready.get("reference")
        return None if said is None else one_line(said, 600)

    def fresh(self) -> None:
        """The next input is the first of a new process."""
        self._sandbox.renew()
        self._history = []

    def one(self, ask: bytes) -> Outcome:
        return self.run([ask])[0]

    def run(self, asks: Sequence[bytes], until: float = math.inf, to_first_death: bool = False) -> list[Outcome]:
        """One that kills its process does not keep the next from being tried. Fewer than were asked for after one
        that hangs, when the time is over, or when the first death is enough."""
        outcomes: list[Outcome] = []
        for start in range(0, len(asks), ITEMS):
            outcomes += self._batch(asks[start : start + ITEMS], until, to_first_death)
            if len(outcomes) < min(start + ITEMS, len(asks)):
                break
        return outcomes

    def _batch(self, asks: Sequence[bytes], until: float, to_first_death: bool) -> list[Outcome]:
        offset, entries = 0, []
        for ask in asks:
            os.pwrite(self._data, ask, offset)
            entries.append((offset, len(ask), 0))
            offset += len(ask)
        outcomes: list[Outcome] = []
        while len(outcomes) < len(asks):
            first = len(outcomes)
            run = self._sandbox.run(entries, first)
            told = dict(msgspec.json.decode(line) for line in run.said)
            stop = len(asks) if run.end is None else first if run.at is None else run.at
            outcomes += [Outcome(told.get(index, {})) for index in range(first, stop)]
            self._history += asks[first:stop]
            if run.end is not None:
                death = self._sandbox.death(run.end)
                if run.at is not None:
                    outcomes.append(Outcome(told.get(stop, {}), death, tuple(self._history)))
                self._history = []
                if to_first_death or death.kind == "endless" or time.monotonic() > until:
                    break
        return outcomes

    def be_patient(self, seconds: float) -> None:
        """How long one input may take from now on."""
        self._sandbox.be_patient(seconds)


class _OpWorker(Worker):
    settings = SETTINGS
    server = SERVER

    def __init__(self, setup: Setup, data: int, tick: Callable[[], None]) -> None:
        self._deaths: GuardedAutopsies | None = None
        super().__init__(setup.python, worker.Limits(*setup.limits), data, os.environ, tick)
        self._setup = setup
        self._table = self._folder / "fence" / "table" if setup.fenced else None
        if self._deaths:
            self._deaths.table = self._table
        self._busy = True

    def ready(self) -> dict[str, Any]:
        """What the server says of the library."""
        if self._link is None:
            self._link = self._connected()
        return self._link.ready

    def be_patient(self, seconds: float) -> None:
        self._limits = self._limits._replace(seconds=seconds)

    def death(self, end: End) -> Death:
        touched = self._deaths.touched if self._deaths and end.kind == "deadly" and self._told else None
        return Death(end.kind, end.reason, end.crash, touched, self._busy)

    def _autopsies_in(self, area: SharedArea) -> Autopsies:
        self._deaths = GuardedAutopsies(area, LOOKS, keep=False)
        return self._deaths

    def _request(self) -> tuple[dict[str, Any], Callable[[Mapping[str, str]], Mapping[str, str]]]:
        request: dict[str, Any] = {"describe": str(op_definition.DESCRIBE), "library": str(self._setup.library)}
        request |= {"modules": self._setup.modules._asdict(), "forbid signals": True}
        request["reference"] = self._setup.reference
        table = self._table
        if table is None:
            return request, lambda _: {}
        table.parent.mkdir(exist_ok=True)
        request["writable"] = [str(table.parent)]
        names = ("fill", "every", "aligned_every")
        request["fence"] = {"table": str(table), **{name: getattr(layout.File, name).offset for name in names}}
        return request, lambda variables: guard_alloc.environment(table, 0, 1, base=variables)

    def _endless(self, link: Link) -> End:
        before, start = _cpu_seconds(self._child), time.monotonic()
        time.sleep(BUSY_SECONDS)
        share = (_cpu_seconds(self._child) - before) / (time.monotonic() - start)
        self._busy = share > BUSY_SHARE
        return super()._endless(link)

    def _unusable(self, why: str) -> FaultlensError:
        return FaultlensError(f"Ops cannot be tried here: {one_line(why, 300)}.", "Try another Python with --python.")


def _cpu_seconds(pid: int) -> float:
    fields = (read_text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0
