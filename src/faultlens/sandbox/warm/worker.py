"""A process that tries items one by one: watched, and ended when it takes too long or too much.

How it ended is told together with the item it was at."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.agent import launch
from faultlens.agent.area import SharedArea
from faultlens.errors import FaultlensError
from faultlens.inspection import numbering
from faultlens.inspection.death import Death
from faultlens.inspection.siginfo import signal_name
from faultlens.records.crash import Crash
from faultlens.records.scan import Kind
from faultlens.sandbox.guest import board as layout
from faultlens.sandbox.guest import confinement
from faultlens.sandbox.guests import inherited
from faultlens.sandbox.warm.autopsy import Autopsies, Told
from faultlens.sandbox.warm.family import below, shared_out
from faultlens.sandbox.warm.link import ENDING_SECONDS, IMPORT_SECONDS, GoneError, Link
from faultlens.text.sizes import in_words

POLL_S, FAMILY_POLL_S = 0.05, 0.1
MAX_PROCESSES = 64
SETTINGS = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "CUDA_VISIBLE_DEVICES": "-1",  # a training may be using them
}

Entry = tuple[int, int, int]  # as board.ENTRY


class Limits(NamedTuple):
    """Of one item."""

    seconds: float = 20.0
    memory: int = 2 << 30  # bytes that it may add


class End(NamedTuple):
    """Of the process that tried items."""

    kind: Kind
    reason: str
    report: str | None = None
    crash: Crash | None = None


class Run(NamedTuple):
    """How far a process came with a batch."""

    said: list[bytes]
    tried: int  # items that it was called with
    end: End | None  # None: it came through all of them
    at: int | None  # the item that it ended at; None: at none


class Worker:
    who = "it"
    settings: Mapping[str, str] = SETTINGS
    server: Path  # guest code, with a Server and a Child of the fork server

    def __init__(
        self, python: str, limits: Limits, data: int, environment: Mapping[str, str], tick: Callable[[], None]
    ) -> None:
        """`data`: the file that items are written to. `tick`: called again and again while it works."""
        self._python, self._limits, self._data = python, limits, data
        self._environment, self._tick = environment, tick
        self._folder = Path(tempfile.mkdtemp(prefix="faultlens-try-"))
        self._area = SharedArea() if launch.agent_problem(python) is None else None
        if self._area and confinement.available().processes:
            self._area.area.supervisor_pid = 1  # the only one above them that they know
        self._autopsies = self._autopsies_in(self._area) if self._area else None
        self._link: Link | None = None
        self._child = 0
        self._own = 0  # what it calls itself
        self._passed = 0  # items that this process has come through
        self._told: Told | None = None  # of its death
        self._rest = 0  # bytes that it took before the first item
        self._next_weighing = 0.0

    def _autopsies_in(self, area: SharedArea) -> Autopsies:
        return Autopsies(area)

    def close(self) -> None:
        if self._link:
            self._link.close()
        if self._area:
            self._area.close()
        self._area = self._autopsies = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, entries: Sequence[Entry], first: int) -> Run:
        """Tries the items of a batch from this one on."""
        link = self._ready()
        board, words = link.board, link.board.words
        for index in range(first, len(entries)):
            board.put(index, *entries[index])
        words[layout.FIRST], words[layout.COUNT] = first, len(entries)
        words[layout.AT] = words[layout.SAID] = words[layout.TRIED] = 0
        words[layout.BATCH] += 1
        link.go()
        size = sum(entry[1] for entry in entries)
        try:
            end = self._watch(link, size)
        except GoneError:
            end = End("deadly", f"the process above {self.who} died with it")
        at = words[layout.AT] - 1 if end and words[layout.AT] else None
        reached = len(entries) if end is None else first if at is None else at
        self._passed += reached - first
        run = Run(board.said(), words[layout.TRIED], end, at)
        if self._child and end is not None:  # nobody has told of its end
            self._drop()
        elif end is None and time.monotonic() > self._next_weighing:
            self._next_weighing = time.monotonic() + FAMILY_POLL_S
            if below(link.pid).resident - self._rest > self._limits.memory // 2:
                self.renew()  # what it keeps must not be laid on an item to come
        return run

    def renew(self) -> None:
        """The next item is the first of a new process."""
        if self._child and self._link:
            try:
                self._kill(self._link)
            except GoneError:
                self._drop()

    # --------------------------------------------------------------------------------------- watching

    def _watch(self, link: Link, size: int) -> End | None:
        words, limits = link.board.words, self._limits
        at, since = words[layout.AT], time.monotonic()
        next_look, resident, looked_at = since + FAMILY_POLL_S, 0, False
        while words[layout.DONE] != words[layout.BATCH]:
            if (status := self._status(link)) is not None:
                return self._ended(status, resident)
            now = time.monotonic()
            if words[layout.AT] != at or (self._told is not None and not looked_at):
                at, since = words[layout.AT], now  # what the look at its death took does not count
                looked_at = self._told is not None
            elif now - since > limits.seconds:
                return self._endless(link)
            if now > next_look:
                next_look = now + FAMILY_POLL_S
                family = below(link.pid)
                resident = family.resident
                if len(family.processes) > MAX_PROCESSES:
                    self._kill(link)
                    return End("greedy", f"{self.who} started more than {MAX_PROCESSES} processes")
                room = self._rest + size + limits.memory
                if resident > room and shared_out(family) > room:
                    self._kill(link)
                    return End("greedy", f"{self.who} took more than {in_words(limits.memory)} of memory")
        return None

    def _status(self, link: Link, seconds: float = POLL_S) -> int | None:
        """With which the process has ended."""
        self._tick()
        for slot in list(self._area.waiting()) if self._area else ():
            assert self._area is not None and self._autopsies is not None
            death = self._area.accept(slot)
            try:
                if death.pid == self._own:  # what it started itself may die
                    seen = numbering.death_seen_from_here(death, link.pid) if link.means.processes else death
                    self._told = self._autopsies.of(seen, self._own)
            finally:
                self._area.release(slot)
        answer = link.answer(seconds)
        if answer is None:
            return None
        self._child = 0
        return int(answer["status"])

    def _ended(self, status: int, resident: int) -> End:
        if not os.WIFSIGNALED(status):
            return End("deadly", f"{self.who} ended its process with exit status {os.waitstatus_to_exitcode(status)}")
        name = signal_name(os.WTERMSIG(status))
        if name == "SIGKILL" and resident - self._rest > self._limits.memory // 2:
            return End("greedy", f"{self.who} was killed, most likely for the memory that it took")
        told = self._told or Told(f"died by {name}")
        return End("deadly", f"{self.who} {told.words}", told.report, told.crash)

    def _endless(self, link: Link) -> End:
        told = Told("")
        if self._autopsies and self._passed == 0:
            told = self._autopsies.of(Death(self._child), self._own)
        self._kill(link)
        reason = f"{self.who} did not come back within {self._limits.seconds:g} s{told.words}"
        return End("endless", reason, told.report, told.crash)

    # ---------------------------------------------------------------------------------- its processes

    def _ready(self) -> Link:
        """With a process that waits for items."""
        for _ in range(3):
            try:
                if self._link is None:
                    self._link = self._connected()
                if self._child:
                    self._status(self._link, 0.0)  # it may have died meanwhile
                if not self._child:
                    self._fork(self._link)
                return self._link
            except GoneError:
                self._drop()
        raise FaultlensError("The process that tries items does not stay alive.", "Try again.")

    def _connected(self) -> Link:
        work = str(self._folder / "work")
        os.makedirs(work, exist_ok=True)
        variables = {**inherited(self._environment), **self.settings, "TMPDIR": work}
        if self._area:
            variables = launch.agent_environment(variables, self._area.path, True)
        request, more = self._request()
        variables |= more(variables)
        request = {**request, "folder": work}
        said = self._folder / "stderr"
        return Link(self._python, request, self._data, variables, self._tick, self.server, said)

    def _request(self) -> tuple[dict[str, Any], Callable[[Mapping[str, str]], Mapping[str, str]]]:
        """What the server is asked for, and the variables that it needs, given the others."""
        raise NotImplementedError

    def _fork(self, link: Link) -> None:
        words = link.board.words
        self._own, self._passed, self._told = link.fork(), 0, None
        self._child = numbering.seen_from_here(self._own, link.pid) if link.means.processes else self._own
        deadline = time.monotonic() + IMPORT_SECONDS
        while not words[layout.READY]:
            if (status := self._status(link)) is not None:
                if words[layout.READY]:  # it said why
                    break
                raise self._unusable(self._ended(status, 0).reason)
            if time.monotonic() > deadline:
                raise self._unusable(f"it was not ready after {IMPORT_SECONDS:g} s")
        if words[layout.READY] == layout.FAILED:
            raise self._unusable(b" ".join(link.board.said()[:1]).decode("utf-8", "replace"))
        self._rest = below(link.pid).resident

    def _unusable(self, why: str) -> FaultlensError:
        raise NotImplementedError

    def _kill(self, link: Link) -> None:
        """The server ends what the process has started."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)  # its number is nobody else's until the server tells of its end
        deadline = time.monotonic() + ENDING_SECONDS
        while self._child and self._status(link) is None:
            if time.monotonic() > deadline:
                raise GoneError

    def _drop(self) -> None:
        if self._link:
            self._link.close()
        self._link, self._child = None, 0
