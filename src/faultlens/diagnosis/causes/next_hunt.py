"""What to run next when memory was damaged and nobody saw who did it."""

from __future__ import annotations

import shlex

from faultlens.diagnosis.causes.base import consider, safe
from faultlens.diagnosis.evidence import fenced
from faultlens.diagnosis.evidence.case import Case
from faultlens.records.diagnosis import Fix
from faultlens.text.secrets import HIDDEN


def hunt_further(case: Case) -> tuple[Fix, ...]:
    """The next run that may catch it in the act: one that fences more, then a build with checks in it."""
    hunt, option, checked = case.crash.hunt, fenced.next_hunt(case.crash), _checked(case)
    if hunt is not None and hunt.problem:
        why = f"nothing was fenced: {hunt.problem}"
        return (consider("run it where blocks can be fenced, without another allocator", why), *checked)
    if hunt is not None and hunt.block is not None:
        why = "most blocks, not all, end right at their guard: the next run may stop at the write itself"
        return (safe("run it again under --hunt=all", why), *checked)
    if option is None:
        return (*checked, consider("run less of the program under --hunt=all", "blocks are fenced while there is room"))
    return (safe(f"catch the damage when it is done: run it under {option}", _run(case, option)), *checked)


def _run(case: Case, option: str) -> str:
    """What to type, where the program's command is known and all of it can be told."""
    command = case.crash.program.command
    told = command and not any(
        word == "-c" or word.startswith("--multiprocessing") or HIDDEN in word for word in command
    )
    return f"faultlens run {option} -- {shlex.join(command)}" if told else f"faultlens run {option} …"


def _checked(case: Case) -> tuple[Fix, ...]:
    """A custom library can be built again with checks in it."""
    names = [path.rpartition("/")[2] for path in case.custom_libraries[:3]]
    if not names:
        return ()
    return (
        safe(f"run it with a checked build of {', '.join(names)}", f"faultlens op sanitize {names[0]} -- python …"),
    )
