"""Whether a stack repeats itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from faultlens.records.crash import Frame

OFTEN = 10  # fewer repetitions are ordinary nesting


class Repetition(NamedTuple):
    function: str
    times: int
    python: bool


def repeated(frames: Sequence[Frame]) -> Repetition | None:
    """The function that fills the stack: a Python one if there is one, since that is what the user knows."""
    for kind in ("python", "native"):
        counts = Counter(frame.function for frame in frames if frame.kind == kind)
        for function, times in counts.most_common(1):
            if times >= OFTEN:
                return Repetition(function, times, kind == "python")
    return None
