"""A process that has TensorFlow loaded and a model built, and forks a child for every save that shall be interrupted.

    with Warm(folder) as warm:
        outcome = warm.trial(Subject("plain", "keras"), Trial(Plan(Action.KILL_BEFORE, at=3)))

Generations 1 and 2 lie in the folder before each trial; in it, 3 is saved. What was interrupted must leave 2 or 3, and
what said that it had saved must leave 3."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import injector
import namespaces
import power_cut
from children import Child, error_of
from injector import Action, Injector, Plan
from loader import Careful
from memory_limit import join, memory_group
from remote import Remote
from subjects import FORMATS, Format, Subject, Way, digest, plainly_found
from trials import AFTER, BEFORE, EARLIER, SAVED, UNTOUCHED, Meanwhile, Outcome, Recording, Trial

PATIENCE = 900.0  # seconds for one answer
HEADSTART = 0.3  # seconds for another writer
SEED = 0
NEIGHBOURS = {"notes.txt": b"not a model\n", "other.keras": b"somebody else's\n" * 1000}


class Warm:
    """The side of the tests: what is called here is done by the server, in a process of its own."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self._folder = folder
        self._python = python
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Warm:
        library = injector.build(self._folder)
        self._server = Remote("warm", "Server", str(library), str(self._folder), python=self._python)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def trial(self, subject: Subject, trial: Trial) -> Outcome:
        return self._ask("trial", subject, trial)

    def crash_loop(self, subject: Subject, calls: list[int]) -> list[Outcome]:
        """Killed before each of these calls, one after the other in one folder; the last save is undisturbed."""
        return self._ask("crash_loop", subject, calls)

    def seconds(self, subject: Subject) -> float:
        """That an undisturbed save takes."""
        return self._ask("seconds", subject)

    def record(self, subject: Subject, from_nothing: bool = False) -> Recording:
        """The save of generation 3; or of all three, into an empty folder."""
        return self._ask("record", subject, from_nothing)

    def power_cuts(
        self, subject: Subject, samples: int, writes: int = 1, from_nothing: bool = False, synced: bool = True
    ) -> list[power_cut.Verdict]:
        """One verdict for every state that the disk may be in: see `power_cut.states`. Not `synced`: as if it had never
        called fsync."""
        return self._ask("power_cuts", subject, samples, writes, from_nothing, synced)

    def two_writers(self, subject: Subject, saves: int) -> tuple[list[str], int | None]:
        """Two processes save at once. Their errors, and what is found in the end."""
        return self._ask("two_writers", subject, saves)

    def read_only(self, subject: Subject) -> tuple[str, int | None]:
        """The error of a save to a read-only file system, and what is found afterwards."""
        return self._ask("read_only", subject)

    def _ask(self, what: str, *arguments: Any) -> Any:
        return self._server.ask(PATIENCE, what, *arguments)


class Server:
    """The warm process itself."""

    def __init__(self, library: str, folder: str) -> None:
        import generations

        self._loader = Careful()
        warnings.simplefilter("ignore")
        self._generations = generations
        self._calls = Injector(Path(library))
        self._folder = Path(folder).resolve()
        self._number = 0
        self._model = generations.build()
        self._seen: dict[tuple[str, str], tuple[int | None, str]] = {}  # the same bytes are loaded only once
        self._templates: dict[Subject, Path] = {}
        self._usual: dict[Subject, Counter[str]] = {}  # the names in a template
        self._warm: set[Way] = set()

    # ------------------------------------------------------------------------------------- the trials

    def trial(self, subject: Subject, trial: Trial) -> Outcome:
        folder = self._prepared(subject)
        outcome = self._tried(subject, trial, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return outcome

    def crash_loop(self, subject: Subject, calls: list[int]) -> list[Outcome]:
        folder = self._prepared(subject)
        plans = [Plan(Action.KILL_BEFORE, at) for at in calls]
        outcomes = [self._tried(subject, Trial(plan), folder) for plan in plans]
        outcomes.append(self._tried(subject, Trial(), folder))
        shutil.rmtree(folder)
        return outcomes

    def _tried(self, subject: Subject, trial: Trial, folder: Path) -> Outcome:
        restarts = trial.again == "after a restart"

        def undisturbed() -> str:
            return error_of(lambda: subject.save(self._model, folder)) or SAVED

        self._calls.plan(folder, trial.plan)
        with memory_group(trial.memory) as group:

            def save() -> tuple[str, str]:
                join(group)
                self._calls.arm()
                if trial.kill_in is not None:
                    self._calls.kill_in(trial.kill_in)
                error = error_of(lambda: subject.save(self._model, folder, trial.background))
                if trial.again != "in the same process":
                    return error, ""
                self._calls.rest()
                return error, undisturbed()

            child = Child(save, number_two=restarts)
            other = None
            if trial.plan.action == Action.STOP_BEFORE and trial.meanwhile is not None:
                other = self._interfere(child, subject, folder, trial.meanwhile)
            ending = child.ended()
        calls, hit = self._calls.count, self._calls.hit
        self._calls.rest()
        said = other.ended().undisturbed() if other else ""
        error, again = ending.answer or ("", "")
        saved = ending.answer is not None and not error
        if restarts:
            again = Child(undisturbed, number_two=True).ended().undisturbed()
        found, why = self._found(subject, folder)
        return Outcome(
            ended=ending.status,
            error=error,
            saved=saved,
            seconds=ending.seconds,
            calls=calls,
            hit=hit,
            found=found,
            at_path=self._at_path(subject, folder),
            allowed=(AFTER,) if saved or SAVED in (again, said) else (BEFORE, AFTER),
            why=why,
            again=again,
            other=said,
            left=tuple(sorted((_names(folder) - self._usual[subject]).elements())),
            intact=trial.meanwhile == "the folder is removed" or _intact(folder),
        )

    def _interfere(self, child: Child, subject: Subject, folder: Path, what: Meanwhile) -> Child | None:
        """While the child stands still. The other one may have to wait for it."""
        child.wait_until_stopped()
        if what == "the folder is removed":
            shutil.rmtree(folder)
            child.signal(signal.SIGCONT)
            return None
        other = Child(lambda: error_of(lambda: subject.save(self._model, folder)) or SAVED)
        time.sleep(HEADSTART)
        child.signal(signal.SIGCONT if what == "another saves" else signal.SIGKILL)
        return other

    def seconds(self, subject: Subject) -> float:
        def timed(folder: Path) -> float:
            self._calls.arm()
            start = time.perf_counter()
            subject.save(self._model, folder)
            return time.perf_counter() - start

        taken = []
        for _ in range(5):
            folder = self._prepared(subject)
            self._calls.plan(folder, UNTOUCHED)
            taken.append(Child(lambda folder=folder: timed(folder)).ended().undisturbed())
            self._calls.rest()
            shutil.rmtree(folder)
        return statistics.median(taken)

    def record(self, subject: Subject, from_nothing: bool = False) -> Recording:
        folder = self._prepared(subject)
        log, before, after = (self._new_folder() / name for name in ("log", "before", "after"))
        if from_nothing:
            shutil.rmtree(folder)
            folder.mkdir()
            _add_neighbours(folder)
        copy(folder, before)
        inodes = {str(path.relative_to(folder)): path.lstat().st_ino for path in folder.rglob("*")}
        self._calls.plan(folder, UNTOUCHED)

        def save() -> dict[int, int]:
            self._calls.arm(log)
            sizes = {}
            for generation in (EARLIER, BEFORE, AFTER) if from_nothing else (AFTER,):
                self._generations.become(self._model, generation)
                subject.save(self._model, folder)
                sizes[generation] = log.stat().st_size
            return sizes

        sizes = Child(save).ended().undisturbed()
        self._calls.rest()
        self._learn(subject, folder, AFTER)
        copy(folder, after)
        times = {state.st_ino: state.st_mtime_ns for state in (path.lstat() for path in folder.rglob("*"))}
        shutil.rmtree(folder)
        finished = {generation: len(injector.read_log(log, size)) for generation, size in sizes.items()}
        if not from_nothing:
            finished[BEFORE] = 0
        return Recording(injector.read_log(log), folder, before, after, inodes, times, finished)

    def power_cuts(
        self, subject: Subject, samples: int, writes: int, from_nothing: bool, synced: bool
    ) -> list[power_cut.Verdict]:
        recording = self.record(subject, from_nothing)
        verdicts = []
        for state in power_cut.states(recording.disk(synced), SEED, samples, writes):
            folder = self._new_folder()
            state.build(folder)
            found, why = self._found(subject, folder)
            allowed = recording.allowed(state.calls)
            why = why if _intact(folder) else "a file beside it was lost"
            lost = found not in allowed or not _intact(folder)
            verdicts.append(power_cut.Verdict(state.words, found, allowed, subject.whole(folder), lost, why))
            shutil.rmtree(folder)
        return verdicts

    def two_writers(self, subject: Subject, saves: int) -> tuple[list[str], int | None]:
        folder = self._prepared(subject)

        def save() -> list[str]:
            return [error_of(lambda: subject.save(self._model, folder)) for _ in range(saves)]

        children = [Child(save) for _ in range(2)]
        errors = [error for child in children for error in child.ended().undisturbed() if error]
        found, _ = self._found(subject, folder)
        shutil.rmtree(folder)
        return errors, found

    def read_only(self, subject: Subject) -> tuple[str, int | None]:
        """Mounted so in a name space of the child's own."""
        folder = self._prepared(subject)

        def save() -> str:
            namespaces.unshare(namespaces.MOUNTS)
            for words in (["--make-rprivate", "/"], ["--bind", folder, folder], ["-o", "remount,ro,bind", folder]):
                subprocess.run(["mount", *words], check=True, capture_output=True)
            return error_of(lambda: subject.save(self._model, folder))

        said = Child(save).ended().undisturbed()
        found, _ = self._found(subject, folder)
        shutil.rmtree(folder)
        return said, found

    # --------------------------------------------------------------------------------- before and after

    def _prepared(self, subject: Subject) -> Path:
        """A folder with generations 1 and 2; the model is the third."""
        self._warm_up(subject.way)
        if subject not in self._templates:
            template = self._new_folder()
            _add_neighbours(template)
            for generation in (EARLIER, BEFORE):
                self._generations.become(self._model, generation)
                said = Child(lambda: error_of(lambda: subject.save(self._model, template))).ended().undisturbed()
                if said:
                    raise RuntimeError(f"{subject}: generation {generation} was not saved: {said}")
                self._learn(subject, template, generation)
            self._templates[subject] = template
            self._usual[subject] = _names(template)
            self._generations.become(self._model, AFTER)
        folder = self._new_folder()
        copy(self._templates[subject], folder)
        return folder

    def _warm_up(self, way: Way) -> None:
        """What is imported and remembered at the first save need not be so in every child."""
        if way in self._warm:
            return
        self._warm.add(way)
        for form in FORMATS:
            folder = self._new_folder()
            Subject(way, form).save(self._model, folder)
            shutil.rmtree(folder)
        gc.collect()
        gc.freeze()  # a collection in a child would copy all memory

    def _learn(self, subject: Subject, folder: Path, generation: int) -> None:
        """An undisturbed save must be found as what it is, or nothing that is said here is worth anything."""
        found, why = self._found(subject, folder)
        if found != generation:
            raise RuntimeError(f"{subject}: undisturbed, generation {generation} was found as {found}: {why}")

    def _found(self, subject: Subject, folder: Path) -> tuple[int | None, str]:
        """Which generation comes back, and why none does."""
        try:
            path = subject.found(folder)
        except Exception as error:
            return None, f"looking for it: {error!r}"
        if path is None:
            return None, "nothing is there"
        return self._loaded(subject.format, path, "through", subject, folder)

    def _at_path(self, subject: Subject, folder: Path) -> int | None:
        path = plainly_found(subject.format, folder)
        return self._loaded(subject.format, path, "plainly", subject.format, path)[0] if path else None

    def _loaded(self, form: Format, path: Path, how: str, *arguments: Any) -> tuple[int | None, str]:
        key = form, digest(path)
        if key not in self._seen:
            self._seen[key] = self._loader.ask(how, *arguments)
        return self._seen[key]

    def _new_folder(self) -> Path:
        self._number += 1
        folder = self._folder / f"{self._number:06d}"
        folder.mkdir()
        return folder


def copy(source: Path, target: Path) -> None:
    """With times, and with files that have two names."""
    names: dict[int, Path] = {}
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        state = path.lstat()
        if path.is_symlink():
            place.symlink_to(os.readlink(path))
        elif path.is_dir():
            place.mkdir()
        elif state.st_ino in names:
            os.link(names[state.st_ino], place)
        else:
            shutil.copy2(path, place)
            names[state.st_ino] = place


def _names(folder: Path) -> Counter[str]:
    """TensorFlow does not mind if it cannot remove a temporary file of its own inside a SavedModel; nor do we."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return Counter(re.sub(r"\d+", "#", name) for name in names if "variables_temp" not in name)


def _add_neighbours(folder: Path) -> None:
    for name, data in NEIGHBOURS.items():
        (folder / name).write_bytes(data)


def _intact(folder: Path) -> bool:
    return all((folder / name).read_bytes() == data for name, data in NEIGHBOURS.items())
