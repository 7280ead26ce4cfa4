"""Looks at a process that dies or hangs, in a way that lets it go whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.inspection.subject import Subject
from faultlens.records.crash import Crash
from faultlens.system.isolated import run_isolated

LOOK_SECONDS = 25.0
LOOK_MEMORY = 4 << 30


class Examined(NamedTuple):
    """What came of looking at a process."""

    subject: Subject
    seen: Crash | None  # None: nothing, for these problems
    problems: Sequence[str]

    def crash(self) -> Crash:
        """To be asked for when the process was let go: it may be short of memory, and so are we then."""
        if self.seen is not None:
            return replace(self.seen, gaps=(*self.seen.gaps, *self.problems))
        from faultlens.inspection import inspect

        return replace(inspect.outline(self.subject.death, self.subject.method), gaps=tuple(self.problems))


def examine(subject: Subject, look: Callable[[Subject], Crash]) -> Examined:
    problems: list[str] = []
    for with_stacks in (True, False):  # what follows the stacks may stumble over a damaged one
        try:
            return Examined(subject, look(subject._replace(with_stacks=with_stacks)), problems)
        except Exception as error:  # whatever it is: the program must be let go, and its death told
            problems.append(f"looking at {'the stacks' if with_stacks else 'the process'} failed: {error}")
    return Examined(subject, None, problems)


def look_here(subject: Subject) -> Crash:
    """Imported only where it is used: until something dies, and while a dying process is held, we stay small."""
    from faultlens.inspection import inspect

    return inspect.inspect(subject)


def look_isolated(subject: Subject) -> Crash:
    try:
        return run_isolated(LOOK_SECONDS, LOOK_MEMORY, look_here, subject)
    except BlockingIOError:  # no more processes allowed: the limit that may be the cause
        return look_here(subject)
