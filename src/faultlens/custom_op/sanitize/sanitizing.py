"""All of `faultlens op sanitize`: for each pass a build, a run of the program, and what came of it."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from faultlens.agent import launch
from faultlens.custom_op.building import Target, target_of
from faultlens.custom_op.sanitize import builds, passes, reading, tools
from faultlens.custom_op.sanitize.builds import Recipe
from faultlens.custom_op.sanitize.findings import without_doubles
from faultlens.custom_op.sanitize.guest import exercise
from faultlens.custom_op.sanitize.passes import SANITIZERS
from faultlens.custom_op.sanitize.running import run
from faultlens.custom_op.sanitize.subject import Subject, subject_of
from faultlens.custom_op.sanitize.tools import Tool
from faultlens.errors import FaultlensError
from faultlens.records.op_finding import Coverage, OpFinding, OpReport
from faultlens.supervise import supervisor
from faultlens.target_env.command import resolve_command
from faultlens.target_env.which_python import which_python
from faultlens.text.quantities import duration


def _never(_: str) -> bool:
    return False


@dataclass(frozen=True)
class Options:
    python: str | None = None
    flags: tuple[str, ...] = ()  # for the compiler
    time_limit: float | None = None
    consent: Callable[[str], bool] = _never  # asked before anything is installed
    tell: Callable[[str], None] = field(default=lambda _: None)  # what is done just now


def sanitize(
    paths: Sequence[Path],
    command: Sequence[str] = (),
    sanitizers: Sequence[str] = (),
    target: Target | None = None,
    options: Options | None = None,
) -> OpReport:
    """`paths`: sources, the library, or both. Without a command the ops of the library are called with inputs of ours;
    without sanitizers those are taken that fit. Raises FaultlensError where nothing can be looked at."""
    return _Sanitizing(subject_of(paths), command, target, options or Options()).run(tuple(sanitizers))


class _Sanitizing:
    def __init__(self, subject: Subject, command: Sequence[str], target: Target | None, options: Options) -> None:
        self.subject = subject
        self.options = options
        self.began = time.monotonic()
        self.is_op = builds.is_op(subject.sources) if subject.sources else subject.registers_ops
        if not command and not self.is_op:
            raise FaultlensError("There is no program to run.", "Add what calls it: -- python script.py")
        self.command = resolve_command(command, options.python).words if command else []
        self.python = options.python or _python_of(self.command)
        self.target = target if target or not self.is_op else target_of(self.python)
        python = self.target.python if self.target else which_python(self.python, os.environ).executable
        self.recipe = Recipe(subject.sources, python, self.target, options.flags) if subject.sources else None
        self.built: dict[tuple[str, ...], Path] = {}  # by flags
        self.findings: list[OpFinding] = []
        self.done: list[str] = []
        self.skipped: list[str] = []
        self.coverage: Coverage = "whole"

    def run(self, sanitizers: tuple[str, ...]) -> OpReport:
        fitting = [name for name in sanitizers or self._usual() if self._fits(name)]
        if not fitting:
            kind = "CUDA kernels" if SANITIZERS[sanitizers[0]].needs_cuda else "TensorFlow ops"
            raise FaultlensError(
                f"--{sanitizers[0]} looks at {kind}, and {self.subject.name} has none.", "Try without it."
            )
        self.tools: dict[Tool, Path] = {}
        possible = [name for name in fitting if self._can(name)]
        if not possible:
            raise FaultlensError(self.skipped[0], "" if len(self.skipped) == 1 else " ".join(self.skipped[1:]))
        with tempfile.TemporaryDirectory(prefix="faultlens-sanitize-") as folder:
            for names in passes.grouped(possible):
                self._pass(names, Path(folder) / "+".join(names))
        if not self.done:
            raise FaultlensError(self.skipped[0], "")
        return OpReport(
            verb="sanitize",
            subject=self.subject.name,
            findings=without_doubles(self.findings),
            done=tuple(self.done),
            skipped=tuple(self.skipped),
            coverage=self.coverage,
            seconds=round(time.monotonic() - self.began, 1),
        )

    # ------------------------------------------------------------------------------------- what can be done

    def _usual(self) -> tuple[str, ...]:
        if self.subject.has_cuda:
            return passes.WITH_CUDA
        return passes.WITH_SOURCE if self.recipe else passes.WITHOUT_SOURCE

    def _fits(self, name: str) -> bool:
        return (self.is_op or not SANITIZERS[name].needs_tensorflow) and (
            self.subject.has_cuda or not SANITIZERS[name].needs_cuda
        )

    def _can(self, name: str) -> bool:
        sanitizer = SANITIZERS[name]
        if sanitizer.needs_source and self.recipe is None:
            self.skipped.append(f"--{name} needs the source of {self.subject.library}: name it, too.")
            return False
        return all(self._has(tool, name) for tool in sanitizer.tools)

    def _has(self, tool: Tool, name: str) -> bool:
        if tool in self.tools:
            return True
        path = tool.find()
        command = tools.install_command(tool) if path is None else None
        if command and self.options.consent(f"{tool.name} is missing; install it with {shlex.join(command)}?"):
            path = tools.install(tool, command)
        if path is None:
            how = f"Install it with: {shlex.join(command)}" if command else tool.elsewhere
            self.skipped.append(f"--{name} needs {tool.name}, which is missing. {how}".strip())
            return False
        self.tools[tool] = path
        return True

    # ------------------------------------------------------------------------------------------- one pass

    def _pass(self, names: tuple[str, ...], folder: Path) -> None:
        folder.mkdir()
        label, log = " + ".join(names), folder / "log"
        began, before = time.monotonic(), len(self.built)
        built = self._build(names, folder) if self._is_built(names[0]) else None
        built_in = time.monotonic() - began
        loaded = built or self.subject.library
        guest = self._guest(names, folder, log, built) if built or "outputs" in names else {}
        setting = passes.setting(names, self.tools, log)
        command = [*setting.before, *(self.command or self._exercise(loaded))]
        self.options.tell(f"running the program ({label})")
        with_agent = setting.agent and launch.agent_problem(command[0]) is None
        watched = supervisor.Options("agent" if with_agent else "status", self.options.time_limit, hunt=setting.hunt)
        began = time.monotonic()
        ended = run(command, setting.environment(guest, os.environ), log, watched)
        took = time.monotonic() - began
        if failure := reading.failure_of(ended):
            self.skipped.append(f"{label}: the sanitizer could not do its work here: {failure}")
        elif "asan" in names and reading.gave_up(ended):
            self.skipped.append(f"{label}: {reading.GAVE_UP}")
            self.coverage = "insufficient"
        elif self.coverage == "whole" and ended.crash.outcome.kind in ("signal", "timeout"):
            self.coverage = "part"  # what it would have done then
        if guest and not ended.loaded and failure:
            return
        if guest and not ended.loaded:
            self.skipped.append(f"{label}: the program never loaded {self.subject.name}, so nothing was checked.")
            return
        if not self.command and ended.crash.outcome.exit_code == 1:
            raise FaultlensError("The ops could not be called.", "Name a program that does: -- python script.py")
        found = reading.findings_of(ended, self.subject.sources, loaded)
        # The line of a program of ours says nothing.
        self.findings += found if self.command else [replace(finding, called_from=None) for finding in found]
        how = f", built in {duration(built_in)}" if len(self.built) > before else ""
        self.done.append(f"{label}: {reading.ending_of(ended.crash)} after {duration(took)}{how}")

    def _is_built(self, name: str) -> bool:
        """Cheap sanitizers run the program's own library, if it was named; else a plain build, for its lines. Lines of
        kernels are seldom in the program's own."""
        if SANITIZERS[name].needs_cuda and self.subject.library:
            return bool(self.recipe and self.recipe.cuda) and tools.nvcc() is not None
        return SANITIZERS[name].needs_source or not self.subject.library

    def _build(self, names: tuple[str, ...], folder: Path) -> Path | None:
        """Once for all passes that want the same."""
        if self.recipe is None:
            return None
        flags = tuple(flag for name in names for flag in builds.FLAGS.get(name, ()))
        if flags in self.built:
            return self.built[flags]
        library = folder / f"{self.recipe.sources[0].stem}.so"
        self.options.tell(f"building {self.subject.name} ({' + '.join(names)})")
        if names == ("tsan",):
            builds.build_for_races(self.recipe, library)
        else:
            builds.build_checked(self.recipe, library, flags)
        self.built[flags] = library
        return library

    def _guest(self, names: tuple[str, ...], folder: Path, log: Path, built: Path | None) -> dict[str, str]:
        sanitized = built or self.subject.library
        own = {passes.OURS: str(builds.guest(folder)), "FAULTLENS_SANITIZE_LOG": str(log)}
        own["FAULTLENS_SANITIZED"] = str(sanitized)
        if not self.command:
            own["FAULTLENS_IN_PLACE_OF"] = str(sanitized)
        elif self.subject.library:
            own["FAULTLENS_IN_PLACE_OF"] = str(self.subject.library)
        else:
            marks = builds.marks_of(Path(own["FAULTLENS_SANITIZED"]))
            own |= {variable: "\n".join(names) for variable, names in marks.items()}
        if "outputs" in names and self.target:
            own["FAULTLENS_OUTPUTS"] = str(builds.outputs(self.target))
            own["FAULTLENS_OUTPUTS_OF"] = str(sanitized)
        return own

    def _exercise(self, library: Path | None) -> list[str]:
        assert self.target is not None and library is not None
        return [self.target.python, exercise.__file__, str(library)]


def _python_of(command: Sequence[str]) -> str | None:
    """The Python that the program runs in."""
    first = command[0] if command else ""
    return shutil.which(first) if "python" in Path(first).name else None
