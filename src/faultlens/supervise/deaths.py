"""The deaths that were seen: of the program, and of processes below it, each place of death once."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from faultlens.inspection.death import place_of_death
from faultlens.inspection.output_tail import OutputTail
from faultlens.records.crash import Crash
from faultlens.supervise.backends.base import Backend, Started
from faultlens.supervise.sources import with_sources

MAX_CHILDREN_KEPT = 50


class Deaths:
    def __init__(
        self, program: Started, backend: Backend, output: OutputTail, on_child_crash: Callable[[Crash], None]
    ) -> None:
        """`on_child_crash` hears of crashes that the program survives."""
        self.main: Crash | None = None
        self.children: list[Crash] = []
        self.not_kept = 0  # children, of too many that died in different places
        self._program = program
        self._backend = backend
        self._output = output
        self._on_child_crash = on_child_crash
        self._places: dict[object, int] = {}  # of death: which of the children

    def keep(self, crash: Crash) -> None:
        if crash.pid == self._program.pid:
            # An emulator dies after the program it runs: the first death is the one to explain.
            self.main = self.main or crash
            return
        place = place_of_death(crash)
        if place in self._places:  # a worker that is started again and again
            self._count_again(self._places[place])
        elif len(self.children) >= MAX_CHILDREN_KEPT:
            self.not_kept += 1
        else:
            self._places[place] = len(self.children)
            crash = self.completed(crash)
            self.children.append(crash)
            self._on_child_crash(crash)

    def _count_again(self, index: int) -> None:
        child = self.children[index]
        self.children[index] = replace(child, times=child.times + 1, seconds=self._seconds())
        self._on_child_crash(self.children[index])

    def completed(self, child: Crash) -> Crash:
        """With all that is known of it besides the look."""
        crash = replace(child, output=self._output.read(child.pid or 0), seconds=self._seconds())
        return with_sources(self._backend.remembered(crash))

    def _seconds(self) -> float:
        return round(self._program.seconds, 3)
