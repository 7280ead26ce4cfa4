"""The user's own script, run again and reduced."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from faultlens.diagnosis.signature import Signature, same_death, signature_of, still_the_same
from faultlens.op_model.files import SCRIPT, Files
from faultlens.op_model.wrapping import wrapped
from faultlens.records.crash import Crash
from faultlens.report.headline import headline
from faultlens.repro import script
from faultlens.repro.reduce_script import Sources, reduce
from faultlens.repro.surroundings import Limits, limits_of
from faultlens.repro.task import Found, Kept, NotReproducedError, Task
from faultlens.sandbox.guest import confinement
from faultlens.sandbox.trial.trial import Bounds, captured
from faultlens.text.safe import one_line

Run = Callable[[Sources], Crash]


def by_script(task: Task) -> list[Found]:
    try:
        user = script.user_script(task.crash, with_data=task.options.own)
    except script.NoScriptError as reason:
        raise NotReproducedError(str(reason)) from reason
    text = "\n".join(user.sources.values())
    if user.differs and task.options.own:
        task.may_run("run the program of the report, which is not what is on the disk now", text)
    if _could_do_harm(text):
        task.may_run("run changed versions of a program, where this kernel cannot fully confine them", text)
    run, sources, first = _running(task, user)
    kept = Kept(task, sources, lambda candidate: still_the_same(first, signature_of(run(candidate))))
    reduce(sources, kept, kept.check_time)
    return [_script_found(task, user, each) for each in kept.best_first()]


def _could_do_harm(text: str) -> bool:
    """Whether it could do something that must not be, where the kernel confines less."""
    means = confinement.available()
    if means.holds_files and means.holds_signals:
        return False
    return not means.landlock or bool(re.search(r"kill|signal|truncate|subprocess|system", text))


def _running(task: Task, user: script.UserScript) -> tuple[Run, Sources, Signature]:
    """The quickest way to run the script in which it dies as it did."""
    modules = tuple(script.slow_modules(user.sources))
    patient = task.patient_bounds()
    limits = limits_of(task.crash)
    last: Crash | None = None

    def warm(sources: Sources, bounds: Bounds, in_order: bool) -> Crash:
        return task.trials(modules).run(_script_files(user, sources), bounds, in_order)

    def cold(sources: Sources, bounds: Bounds) -> Crash:
        return captured(_script_files(user, sources), task.surroundings, bounds)

    ways: list[Callable[[Sources, Bounds], Crash]] = [
        lambda sources, bounds: warm(sources, bounds, False),
        lambda sources, bounds: warm(sources, bounds, True),
        cold,
    ]
    for way in ways[1:] if task.crash.exiting else ways:
        for sources in (user.sources, _with_limits(user.sources, limits)) if limits else (user.sources,):
            task.tell("running the script again")
            began = time.monotonic()
            last = way(sources, patient)
            bounds = patient._replace(seconds=2 * (time.monotonic() - began) + 5)
            seen = signature_of(last)
            if same_death(task.wanted, seen):
                return (lambda candidate, way=way, bounds=bounds: way(candidate, bounds)), sources, seen
    assert last is not None
    raise NotReproducedError(_why_not(user, last))


def _why_not(user: script.UserScript, last: Crash) -> str:
    name = one_line(Path(user.path).name, 80)
    ended = headline(last) if not last.gaps else last.gaps[0]
    lost = f" Not recorded: {', '.join(user.lost)}." if user.lost else ""
    said = last.output.stderr or ""
    denied = " It may write to its own folder only." if "PermissionError" in said or "Read-only" in said else ""
    return f"{name}, run again, ended otherwise: {ended}.{lost}{denied}"


def _script_files(user: script.UserScript, sources: Sources) -> Files:
    return {**user.data, **{name: text.encode() for name, text in sources.items()}}


def _script_found(task: Task, user: script.UserScript, sources: Sources) -> Found:
    commented = {**sources, SCRIPT: f"# Dies by {task.wanted}.\n{wrapped(sources[SCRIPT])}"}
    data = script.files_in_use(sources, user.data)
    files = {**data, **{name: text.encode() for name, text in commented.items()}}
    return Found("script", Path(user.path).stem, files, task.wanted)


def _with_limits(sources: Sources, limits: Limits) -> Sources:
    lines = [f"resource.setrlimit(resource.{name}, ({value!r}, {value!r}))" for name, value in limits]
    return {**sources, SCRIPT: script.with_lines_before(sources[SCRIPT], ["import resource", *lines])}
