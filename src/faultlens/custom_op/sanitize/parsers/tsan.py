"""What ThreadSanitizer wrote: data races between calls of the op."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from faultlens.custom_op.sanitize.reports import Reported, Stack, bytes_of, sections, stacks_of

TOOL = "ThreadSanitizer"
_BEGIN = re.compile(r"^WARNING: ThreadSanitizer: (.*?) \(pid=\d+\)$")
_ACCESS = re.compile(
    r"^(?:Previous )?(atomic )?(read|write) of size (\d+) at 0x[0-9a-f]+ by (.*?)(?: \(mutexes.*\))?:$", re.I
)


def parse(text: str) -> Iterator[Reported]:
    for order, (head, lines) in enumerate(sections(text, _BEGIN)):
        if head[1].startswith("data race") and (race := _race(lines, order)):
            yield race


def _race(lines: Sequence[str], order: int) -> Reported | None:
    stacks = list(stacks_of(lines))
    accesses = [(found, frames) for heading, frames in stacks if (found := _ACCESS.match(heading))]
    if len(accesses) < 2:
        return None  # the stack of the other one was forgotten: nothing can be said of it
    (first, frames), (second, other) = accesses[:2]
    memory = next(((heading, stack) for heading, stack in stacks if heading.startswith("Location is")), None)
    others = [Stack(f"{second[2].lower()} of {bytes_of(second[3])} at the same time, by another thread", other)]
    if memory and "heap block" in memory[0]:
        others.append(Stack("the memory was allocated here", memory[1]))
    return Reported(
        rule="data-race",
        words=f"{first[2].lower()} of {bytes_of(first[3])} that another thread {_does(second[2])} at the same time",
        tool=TOOL,
        frames=frames,
        others=tuple(others),
        facts=(memory[0].removesuffix(":") if memory else "two threads, no order between them",),
        noted="tsan",
        order=order,
    )


def _does(verb: str) -> str:
    return "reads" if verb.lower() == "read" else "writes"
