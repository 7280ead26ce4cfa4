"""From a report to a small program that dies the same way, seen to do so.

First the op at fault is called with the inputs that were recorded; where that does not die, the user's script is run
again. What dies is made smaller as long as there is time, and then started anew three times for the proof."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from faultlens.clues.kernels import in_words, kernel_at_fault, user_op
from faultlens.clues.owners import custom_libraries
from faultlens.crash import Crash
from faultlens.diagnosis import Reproducer
from faultlens.errors import FaultlensError
from faultlens.redaction import HIDDEN
from faultlens.remedy import op_definition, reduce_script, script, shrink_op
from faultlens.remedy.op_call import Call, CannotCallError, call_of, forms_for, script_of
from faultlens.remedy.shrink_op import OutOfTimeError
from faultlens.remedy.signature import Signature, same_death, signature_of, still_the_same
from faultlens.remedy.trial import SCRIPT, Bounds, Files, Surroundings, WarmTrials, captured, default_bounds
from faultlens.report.headline import headline
from faultlens.safe_text import one_line

PROOFS = 3
PATIENCE_S = 20.0  # on top of what the program took
# What decides how native code behaves; other variables are taken from where faultlens runs.
_SETTINGS = ("TF_", "TF2_", "XLA_", "LD_", "PYTHON", "OMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "GLIBC_TUNABLES")
_NOT_SETTINGS = ("PYTHONSTARTUP", "PYTHONDONTWRITEBYTECODE", "TF_CLI_CONFIG_FILE")
_LIMITS = ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_NOFILE", "RLIMIT_NPROC")

Tell = Callable[[str], None]  # what is being done, for the screen
Candidate = TypeVar("Candidate")
MayRun = Callable[[str, str], None]  # (what, its text): raises FaultlensError if it may not be run


class NotReproducedError(Exception):
    """There is no reproducer; the text says why in a sentence."""


class Wishes(NamedTuple):
    python: str | None = None
    seconds: float = 60.0  # for shrinking
    trusted: bool = False  # the report is one of our own


class Found(NamedTuple):
    kind: Literal["op", "script"]
    name: str  # of the op or of the script
    files: Files
    signature: Signature
    runs: int = 0
    same: int = 0
    proof: Crash | None = None  # the last of those runs that died the same way

    def record(self) -> Reproducer:
        return Reproducer(
            kind=self.kind,
            script=self.files[SCRIPT].decode(),
            files={name: data for name, data in self.files.items() if name != SCRIPT},
            runs=self.runs,
            same=self.same,
            signature=str(self.signature),
        )


def reproduce(crash: Crash, wishes: Wishes, may_run: MayRun, tell: Tell) -> Found:
    wanted = wanted_death(crash)
    surroundings = _surroundings(crash, wishes, may_run)
    reasons = []
    with _Task(crash, wanted, surroundings, wishes, may_run, tell) as task:
        for strategy in (_by_op, _by_script):
            try:
                candidates = strategy(task)
            except NotReproducedError as reason:
                reasons.append(str(reason))
                continue
            found = _most_reliable(task, candidates)
            if found.same:
                return found
            reasons.append(f"What died when {found.name} was tried did not die when it was started anew.")
    raise NotReproducedError(" ".join(reasons))


def wanted_death(crash: Crash) -> Signature:
    """How a reproducer has to die; NotReproducedError for ends that no script brings about by itself."""
    outcome, fault = crash.outcome, crash.fault
    if outcome.kind == "hang":
        raise NotReproducedError("A program that hangs does not die: there is nothing to compare a reproducer with.")
    if outcome.signal == "SIGKILL":
        raise NotReproducedError("It was killed (SIGKILL), which leaves nothing to compare a reproducer with.")
    if fault and fault.code in ("SI_USER", "SI_QUEUE") and fault.sender_pid not in (None, crash.pid):
        raise NotReproducedError(f"{fault.signal} was sent by another process, which no script of its own does.")
    wanted = signature_of(crash)
    if wanted.signal is None and wanted.exception is None:
        ended = "normally" if outcome.kind == "ok" else f"by itself, with exit code {outcome.exit_code}"
        raise NotReproducedError(f"The program ended {ended}: there is no crash to reproduce.")
    return wanted


class _Task:
    """One report that is worked on, and the Pythons that were started for it."""

    def __init__(
        self, crash: Crash, wanted: Signature, surroundings: Surroundings, wishes: Wishes, may_run: MayRun, tell: Tell
    ) -> None:
        self.crash = crash
        self.wanted = wanted
        self.surroundings = surroundings
        self.wishes = wishes
        self.may_run = may_run
        self.tell = tell
        self._servers: dict[tuple[str, ...], WarmTrials] = {}

    def __enter__(self) -> _Task:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.close()

    def trials(self, modules: tuple[str, ...]) -> WarmTrials:
        if modules not in self._servers:
            self.tell(f"starting {self.surroundings.python}" + (f" with {modules[-1]}" if modules else ""))
            self._servers[modules] = WarmTrials(self.surroundings, modules)
        return self._servers[modules]


class _Kept(Generic[Candidate]):
    """Asks whether a candidate still dies the same way, for as long as there is time, and remembers those that do."""

    def __init__(self, task: _Task, first: Candidate, test: Callable[[Candidate], bool]) -> None:
        self._task = task
        self._test = test
        self._kept = [first]
        self._trials = 0
        self._deadline = time.monotonic() + task.wishes.seconds

    def __call__(self, candidate: Candidate) -> bool:
        if time.monotonic() > self._deadline:
            raise OutOfTimeError
        self._trials += 1
        self._task.tell(f"shrinking, trial {self._trials}, {len(self._kept) - 1} steps")
        if not self._test(candidate):
            return False
        self._kept.append(candidate)
        return True

    def best_first(self) -> list[Candidate]:
        """The smallest, then larger ones: what died here by chance may not die when it is started anew."""
        last = len(self._kept) - 1
        return [self._kept[index] for index in dict.fromkeys((last, last * 3 // 4, last // 2, last // 4, 0))]


def _most_reliable(task: _Task, candidates: list[Found]) -> Found:
    """The first that dies every time; else the one that does most often, the smallest of equals."""
    best = candidates[0]
    for candidate in candidates:
        found = _proven(task, candidate)
        best = found if found.same > best.same else best
        if best.same == PROOFS:
            break
    return best


def _proven(task: _Task, candidate: Found) -> Found:
    """Started anew each time, and captured as `faultlens run` does it."""
    found = candidate
    for number in range(1, PROOFS + 1):
        task.tell(f"proof {number} of {PROOFS}")
        crash = captured(candidate.files, task.surroundings, _patient_bounds(task.crash))
        found = found._replace(runs=number)
        if same_death(task.wanted, signature_of(crash)):
            found = found._replace(same=found.same + 1, proof=crash)
        if not found.same:  # another candidate may do better
            break
    return found


def _patient_bounds(crash: Crash) -> Bounds:
    return default_bounds(min(2 * (crash.seconds or 10.0) + PATIENCE_S, 300.0))


# ------------------------------------------------------------------------------------- the op by itself


def _by_op(task: _Task) -> list[Found]:
    kernel = kernel_at_fault(task.crash)
    if kernel is None:
        raise NotReproducedError("No op of TensorFlow was found at work.")
    if not task.wishes.trusted:
        task.may_run("call the op of the report", in_words(kernel))  # ops write files, too
    trials = task.trials(("numpy", "tensorflow"))
    if "tensorflow" in trials.missing:
        raise FaultlensError(
            f"TensorFlow cannot be imported by {task.surroundings.python}.", "Name another Python with --python."
        )
    name = user_op(kernel)
    definition = _definition(task, trials, [name, kernel.op])
    try:
        call = call_of(kernel, definition)
    except CannotCallError as reason:
        raise NotReproducedError(f"{one_line(name, 80)} cannot be called by itself: {reason}.") from reason
    bounds = default_bounds(PATIENCE_S)
    task.tell(f"calling {name} by itself")
    other: Signature | None = None
    for candidate in _variants(call, task.crash):
        seen = signature_of(trials.run(script_of(candidate), bounds))
        if same_death(task.wanted, seen):
            return [_op_found(task, each) for each in _shrunk_calls(task, trials, candidate, seen)]
        other = other or (seen if seen.signal else None)
    instead = f"it dies otherwise ({other})" if other else "it does not die"
    raise NotReproducedError(f"Called by itself with the recorded inputs, {one_line(name, 80)} {instead[3:]}.")


def _definition(task: _Task, trials: WarmTrials, names: list[str]) -> op_definition.Definition:
    bounds = default_bounds(PATIENCE_S)
    libraries: list[str] = []
    for _ in range(2):
        for name in dict.fromkeys(names):
            if definition := op_definition.ask(trials, name, libraries, bounds):
                return definition
        libraries = [path for path in custom_libraries(task.crash) if Path(path).is_file()]
        if not libraries:
            break
        if not task.wishes.trusted:
            task.may_run("load the libraries of the report", "\n".join(libraries))
    raise NotReproducedError(f"The op {one_line(names[0], 80)} is not known to this TensorFlow.")


def _variants(call: Call, crash: Crash) -> Iterator[Call]:
    kernel = kernel_at_fault(crash)
    assert kernel is not None
    limits = _limits(crash)
    for bounded in ((), limits) if limits else ((),):
        for form in forms_for(crash, kernel):
            for filled in _fills(call):
                yield filled._replace(form=form, limits=bounded)


def _fills(call: Call) -> Iterator[Call]:
    """Where contents were not recorded they are made up, in three ways."""
    yield call
    if all(array.recorded for array in call.arrays()):
        return
    for fill in (1, "random"):
        arguments = tuple(
            argument._replace(arrays=tuple(a if a.recorded else a._replace(fill=fill) for a in argument.arrays))
            for argument in call.arguments
        )
        yield call._replace(arguments=arguments)


def _shrunk_calls(task: _Task, trials: WarmTrials, call: Call, first: Signature) -> list[Call]:
    """The smallest call that was found, and larger ones in case that it dies by chance only."""
    bounds = default_bounds(PATIENCE_S)
    kept = _Kept(task, call, lambda each: still_the_same(first, signature_of(trials.run(script_of(each), bounds))))
    shrink_op.shrink(call, kept)
    return kept.best_first()


def _op_found(task: _Task, call: Call) -> Found:
    return Found("op", call.op, script_of(call, [f"Dies by {task.wanted}."]), task.wanted)


# -------------------------------------------------------------------------------------- the user's script


def _by_script(task: _Task) -> list[Found]:
    try:
        user = script.user_script(task.crash)
    except script.NoScriptError as reason:
        raise NotReproducedError(str(reason)) from reason
    if user.differs or not task.wishes.trusted:
        task.may_run("run the program of the report", "\n".join(user.sources.values()))
    run, sources, first = _running(task, user)
    kept = _Kept(task, sources, lambda candidate: still_the_same(first, signature_of(run(candidate))))
    reduce_script.reduce(sources, kept)
    return [_script_found(task, user, each) for each in kept.best_first()]


Run = Callable[[reduce_script.Sources], Crash]


def _running(task: _Task, user: script.UserScript) -> tuple[Run, reduce_script.Sources, Signature]:
    """The quickest way to run the script in which it dies as it did."""
    modules = tuple(script.slow_modules(user.sources))
    patient = _patient_bounds(task.crash)
    limits = _limits(task.crash)
    last: Crash | None = None

    def warm(sources: reduce_script.Sources, bounds: Bounds, in_order: bool) -> Crash:
        return task.trials(modules).run(_script_files(user, sources), bounds, in_order)

    def cold(sources: reduce_script.Sources, bounds: Bounds) -> Crash:
        return captured(_script_files(user, sources), task.surroundings, bounds)

    ways: list[Callable[[reduce_script.Sources, Bounds], Crash]] = [
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
    return f"{name}, run again, ended otherwise: {ended}.{lost}"


def _script_files(user: script.UserScript, sources: reduce_script.Sources) -> Files:
    return {**user.data, **{name: text.encode() for name, text in sources.items()}}


def _script_found(task: _Task, user: script.UserScript, sources: reduce_script.Sources) -> Found:
    commented = {**sources, SCRIPT: f"# Dies by {task.wanted}.\n{sources[SCRIPT].rstrip()}\n"}
    data = script.files_in_use(sources, user.data)
    files = {**data, **{name: text.encode() for name, text in commented.items()}}
    return Found("script", Path(user.path).stem, files, task.wanted)


def _with_limits(sources: reduce_script.Sources, limits: tuple[tuple[str, int], ...]) -> reduce_script.Sources:
    lines = [f"resource.setrlimit(resource.{name}, ({value!r}, {value!r}))" for name, value in limits]
    return {**sources, SCRIPT: script.with_lines_before(sources[SCRIPT], ["import resource", *lines])}


# ---------------------------------------------------------------------------------------- surroundings


def _surroundings(crash: Crash, wishes: Wishes, may_run: MayRun) -> Surroundings:
    python = wishes.python or _program_python(crash)
    if python is None:
        raise FaultlensError("The report does not tell which Python ran the program.", "Name it with --python.")
    if not Path(python).is_file():
        raise FaultlensError(
            f"The Python of the program, {one_line(python, 200)}, is not here.", "Name one with --python."
        )
    if not wishes.python and not wishes.trusted:
        may_run("run the Python that the report names", python)
    return Surroundings(python, _settings(crash) if wishes.trusted else {})


def _program_python(crash: Crash) -> str | None:
    known = crash.program.python
    if known is None:
        return None
    virtual = Path(known.prefix) / "bin" / "python" if known.prefix else None
    return str(virtual) if virtual and virtual.is_file() else known.executable


def _settings(crash: Crash) -> dict[str, str]:
    """The program's variables that decide how native code behaves."""
    found = {}
    for name, value in crash.program.environment.items():
        if name.startswith(_SETTINGS) and name not in _NOT_SETTINGS and value != HIDDEN:
            if name == "LD_PRELOAD":  # the agent of the first run is not the program's
                value = ":".join(
                    each for each in value.replace(" ", ":").split(":") if "libfaultlens_agent" not in each
                )
            if value:
                found[name] = value
    return found


def _limits(crash: Crash) -> tuple[tuple[str, int], ...]:
    """Limits that the program had and we have not."""
    found = []
    for name in _LIMITS:
        limit = crash.limits.get(name)
        ours = resource.getrlimit(getattr(resource, name))[0]
        if limit and limit.soft is not None and (ours == resource.RLIM_INFINITY or limit.soft < ours):
            found.append((name, limit.soft))
    return tuple(found)
