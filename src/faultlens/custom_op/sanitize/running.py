"""Runs the program with a sanitizer in it, and gathers what was written about it."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from faultlens.records.crash import Crash
from faultlens.supervise.supervisor import Options, supervise

ADDR_NO_RANDOMIZE = 0x0040000
CURRENT = 0xFFFFFFFF


class Run(NamedTuple):
    crash: Crash
    folder: Path  # of the logs

    def text(self, beginning: str) -> str:
        """Of all processes that the program consists of."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob(beginning)))

    @property
    def loaded(self) -> bool:
        """Whether the program took the library that was given to it."""
        return any(self.folder.glob("*.loaded"))


def run(command: Sequence[str], variables: Mapping[str, str], folder: Path, options: Options) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    with fixed_addresses():
        ending = supervise(command, options._replace(variables=variables), lambda _: None)
    return Run(ending.crash, folder)


@contextlib.contextmanager
def fixed_addresses() -> Iterator[None]:
    """Sanitizers need certain addresses, which the kernel may have given away at random."""
    personality = ctypes.CDLL(None).personality
    before = personality(CURRENT)
    personality(before | ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        personality(before)
