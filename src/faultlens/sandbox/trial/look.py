"""A quick look at a trial that died: the crashed stack only, with names that are remembered for the next trial."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from msgspec.structs import replace

from faultlens.agent import LIBRARY
from faultlens.inspection import inspect, stacks, unwind
from faultlens.inspection.death import Death
from faultlens.inspection.freeze import Freeze
from faultlens.inspection.maps import locate, parse_maps
from faultlens.inspection.memory import ProcessMemory
from faultlens.inspection.merging import PythonFrame, merge
from faultlens.inspection.symbols import native_frames
from faultlens.records.crash import Address, Crash, Frame, Mapping, Thread
from faultlens.system.procfs import read_text

MAX_FRAMES = 200


class QuickLook:
    """The innermost frames of the crashed thread. The first look at a place takes a second, the next 20 ms."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Frame] = {}

    def __call__(self, death: Death) -> Crash:
        raw = death.faults[0]
        with Freeze(death.pid) as freeze, ProcessMemory(death.pid) as memory:
            mappings = parse_maps(read_text(f"/proc/{death.pid}/maps") or "")
            addresses: list[int] = []
            if freeze.problem is None:
                with contextlib.suppress(unwind.UnwindError):
                    addresses = unwind.addresses_of_thread(death.pid, raw.thread, MAX_FRAMES)
            program_counter = raw.registers["rip"]
            if program_counter in addresses:  # above it stand the frames of the agent's signal handler
                addresses = addresses[addresses.index(program_counter) :]
            thread = Thread(id=raw.thread, frames=self._frames(addresses, mappings), crashed=True)
            thread = stacks.at_fault(thread, raw.registers, memory, mappings)
        frames = [frame for frame in thread.frames if frame.library != str(LIBRARY)]
        thread = replace(thread, frames=tuple(merge([_SOME_PYTHON], frames)))
        return replace(inspect.outline(death, "agent"), threads=(thread,), mappings=mappings)

    def _frames(self, addresses: Sequence[int], mappings: Sequence[Mapping]) -> tuple[Frame, ...]:
        places = [locate(mappings, address) for address in addresses]
        new = [
            address
            for address, place in zip(addresses, places, strict=True)
            if place and (place.path, place.offset) not in self._known
        ]
        # The instruction that was interrupted may be the first one of its function, a return address not.
        interrupted = bool(new) and new[0] == addresses[0]
        for address, frame in zip(new, native_frames(new, mappings, interrupted), strict=True):
            place = locate(mappings, address)
            if place:
                self._known[place.path, place.offset] = frame
        return tuple(
            replace(self._known[place.path, place.offset], address=Address(address))
            if place
            else Frame(kind="native", function="??", address=Address(address))
            for address, place in zip(addresses, places, strict=True)
        )


# Stands for all Python code: what lies below is not looked at.
_SOME_PYTHON = PythonFrame(Frame(kind="python", function="?"), is_entry=True)
