"""What did a decoder die of? A process that is held at its fatal signal becomes a stored report, and a few words.

The same death again is known by its innermost frames, and not looked at twice."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.agent.area import SharedArea
from faultlens.errors import FaultlensError
from faultlens.inspection import inspect, unwind
from faultlens.inspection.death import Death
from faultlens.inspection.freeze import Freeze
from faultlens.inspection.graph_lines import with_graph_lines
from faultlens.inspection.maps import locate, parse_maps
from faultlens.inspection.numbering import thread_numbers
from faultlens.inspection.siginfo import parse
from faultlens.inspection.subject import Subject
from faultlens.records.crash import Crash, Output
from faultlens.records.diagnosis import UNKNOWN
from faultlens.report.make import make_report
from faultlens.store import folder
from faultlens.supervise.sources import own_source, with_sources
from faultlens.system.isolated import IsolatedError, run_isolated
from faultlens.system.procfs import read_text
from faultlens.text.redaction import hide_values

MAX_LOOKS = 12  # by one process of the scan: they take about a second
LOOK_SECONDS, LOOK_MEMORY = 25.0, 4 << 30
GLANCE_SECONDS, GLANCE_MEMORY = 5.0, 1 << 30
MAX_FRAMES = 64
FRAMES_THAT_TELL = 12
TAIL = 64 * 1024

Signature = tuple[str, ...]


class Told(NamedTuple):
    words: str  # what follows "the decoder": "died by SIGSEGV in op DecodeImage: it read beyond its input"
    report: str | None = None
    crash: Crash | None = None


class Autopsies:
    def __init__(self, area: SharedArea, looks: int = MAX_LOOKS, keep: bool = True) -> None:
        """`keep`: reports are stored."""
        self._area = area
        self._most, self._keep = looks, keep
        self._known: dict[Signature, Told] = {}
        self._looks = 0

    def of(self, death: Death, own: int) -> Told:
        """Of a process that died, or (without a fault) that does not come back. `own`: what it calls itself."""
        signal = parse(death.faults[0].siginfo).name if death.faults else ""
        signature: Signature = (signal,)
        with contextlib.suppress(IsolatedError, OSError):
            signature += run_isolated(GLANCE_SECONDS, GLANCE_MEMORY, _frames, death)
        if told := self._known.get(signature):
            return told
        told = Told(f"died by {signal}" if signal else "")
        if self._looks < self._most:
            self._looks += 1
            told = self._known[signature] = self._looked(death, own, told)
        return told

    def _looked(self, death: Death, own: int, told: Told) -> Told:
        crash: Crash | None = None
        for with_stacks in (True, False):  # what follows the stacks may stumble over a damaged one
            with contextlib.suppress(IsolatedError, OSError):
                subject = Subject(death, with_stacks=with_stacks)
                crash = run_isolated(LOOK_SECONDS, LOOK_MEMORY, inspect.inspect, subject)
                break
        crash = crash or inspect.outline(death, "agent")
        if own != crash.pid:  # what it left in memory bears its own numbers
            crash = _renumbered(crash, own)
        stderr = hide_values(self._area.output_tail(own, 2)[-TAIL:], os.environ)
        crash = replace(crash, output=Output(stderr=stderr))
        if crash.kernels:
            seen = crash
            crash = with_graph_lines(seen, self._area.notes(), lambda path: own_source(seen, path))
        report = make_report(with_sources(crash))
        first = next((each for each in report.diagnoses if each.cause != UNKNOWN), None)
        op = (first and first.op) or next((each.op for each in crash.kernels if each.at_fault), None)
        title = f": {first.title.removeprefix('no progress: ')}" if first else ""
        words = told.words + (f" in op {op}" if op and op not in title else "") + title
        kept = None
        if self._keep:
            with contextlib.suppress(FaultlensError):  # it cannot be kept; the scan goes on
                kept = folder.identity(folder.save(report))
        return Told(words, kept, report.crash)


def _renumbered(crash: Crash, own: int) -> Crash:
    """As the process calls itself and its threads; it is still there."""
    numbers = {here: inside for inside, here in thread_numbers(crash.pid).items()} if crash.pid else {}
    threads = (replace(thread, id=numbers.get(thread.id, thread.id)) for thread in crash.threads)
    return replace(crash, pid=own, parent_pid=1, threads=tuple(threads))


def _frames(death: Death) -> Signature:
    """The innermost places on the stack, without their names: those take a hundred times longer."""
    pid = death.pid
    thread, start = (death.faults[0].thread, death.faults[0].registers["rip"]) if death.faults else (pid, None)
    with Freeze(pid):
        mappings = parse_maps(read_text(f"/proc/{pid}/maps") or "")
        addresses: list[int] = []
        with contextlib.suppress(unwind.UnwindError):
            addresses = unwind.addresses_of_thread(pid, thread, MAX_FRAMES)
    if start in addresses:  # above it stand the frames of the agent's signal handler
        addresses = addresses[addresses.index(start) :]
    places = [locate(mappings, address) for address in addresses]
    return tuple(f"{place.path}+{place.offset:x}" for place in places if place)[:FRAMES_THAT_TELL]
