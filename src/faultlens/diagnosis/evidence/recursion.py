"""Whether a stack repeats itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from faultlens.inspection.frames import is_gap
from faultlens.records.crash import Frame

OFTEN = 10  # fewer repetitions are ordinary nesting


class Repetition(NamedTuple):
    function: str
    times: int
    python: bool
    at_least: bool = False  # frames were left out, or the walk ended within the recursion

    @property
    def times_in_words(self) -> str:
        return f"at least {self.times} times" if self.at_least else f"{self.times} times"


def repeated(frames: Sequence[Frame]) -> Repetition | None:
    """The function that fills the stack: a Python one if there is one, since that is what the user knows."""
    for kind in ("python", "native"):
        counts = Counter(frame.function for frame in frames if frame.kind == kind)
        for function, times in counts.most_common(1):
            if times >= OFTEN:
                return Repetition(function, times, kind == "python", _is_cut(frames, function))
    return None


def _is_cut(frames: Sequence[Frame], function: str) -> bool:
    return any(map(is_gap, frames)) or frames[-1].function == function
