"""The environment under examination: each part of it is looked at once, when a check first asks for it."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from faultlens.records.crash import CgroupState, Limit, MachineState
from faultlens.system.allowance import Allowance, own_allowance
from faultlens.system.binary import Binary, Dynamic
from faultlens.system.cgroup import cgroup_of
from faultlens.system.elf import ElfError
from faultlens.system.gpus import Gpus, look
from faultlens.system.machine import machine_state
from faultlens.target_env.distributions import Distribution, installed
from faultlens.target_env.interpreter import Interpreter, find_interpreter
from faultlens.target_env.loading import MISLEADING, Loading, imagine

ASIDE = ".faultlens-aside"  # where repairs put what was in the way
PLUGINS = "tensorflow-plugins"  # whose libraries `import tensorflow` loads
# The wheels that bring the package `tensorflow`.
TENSORFLOW_WHEELS = (
    "tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-rocm", "tf-nightly",
    "tf-nightly-cpu", "tf-nightly-gpu", "intel-tensorflow", "tensorflow-cpu-aws", "tensorflow-macos",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """What the user asked to look at."""

    python: str | None = None
    cpu: str | None = None  # another CPU than this one
    ops: tuple[Path, ...] = ()  # custom op libraries
    models: tuple[Path, ...] = ()  # saved models and checkpoints
    folders: tuple[Path, ...] = ()  # where the program saves
    deep: bool = False  # take the time to read whole libraries


@dataclass(frozen=True)
class TensorFlow:
    distribution: Distribution
    folder: Path  # …/site-packages/tensorflow

    @property
    def version(self) -> str:
        return self.distribution.version


@dataclass(frozen=True)
class TargetEnvironment:
    """Facts, no judgement. Tests make one with the facts they need: `Patient(interpreter, limits=…)`."""

    interpreter: Interpreter
    options: Options = Options()
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    directory: Path = field(default_factory=lambda: here())
    limits: Mapping[str, Limit] = field(default_factory=lambda: own_limits())
    machine: MachineState = field(default_factory=machine_state)
    cgroup: CgroupState | None = field(default_factory=lambda: own_cgroup())

    @cached_property
    def allowance(self) -> Allowance:
        return own_allowance()

    @cached_property
    def gpus(self) -> Gpus:
        return look(self.variables)

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """What is installed, each once: the copy that an import would find."""
        return installed(self.interpreter.path)

    def distribution(self, name: str) -> Distribution | None:
        return next((each for each in self.distributions if each.key == name), None)

    @cached_property
    def tensorflow(self) -> TensorFlow | None:
        """The package that `import tensorflow` would find, with the wheel that brought it."""
        wheels = [found for name in TENSORFLOW_WHEELS if (found := self.distribution(name)) is not None]
        for folder in self.packages_named("tensorflow"):
            for wheel in wheels:
                if wheel.folder == folder.parent:
                    return TensorFlow(wheel, folder)
        return None

    def packages_named(self, name: str) -> Iterator[Path]:
        """Folders of a package in the order in which an import looks for it."""
        for entry in self.interpreter.path:
            folder = Path(entry) / name
            if os.path.isdir(folder):  # unlike Path.is_dir it says no where one may not look
                yield folder

    @cached_property
    def native_files(self) -> tuple[Path, ...]:
        """All shared libraries in the folders where packages are looked for, the standard library left out."""
        found: list[Path] = []
        for entry in self.interpreter.path:
            if Path(entry).name in ("site-packages", "dist-packages"):
                _collect(entry, found, is_used)
        return tuple(found)

    @cached_property
    def dynamics(self) -> Mapping[Path, Dynamic]:
        """What the loader would obey in each of them; what is no whole x86-64 library is left out."""
        found: dict[Path, Dynamic] = {}
        for path in self.native_files:
            try:
                with Binary(path) as binary:
                    if binary.is_whole:
                        found[path] = binary.dynamic
            except (OSError, ElfError):
                continue
        return found

    @cached_property
    def loading(self) -> Loading:
        """What the loader would take for `import tensorflow`. Raises LoadingError."""
        return imagine(self, self.variables)

    @cached_property
    def undisturbed_loading(self) -> Loading:
        """The same without LD_LIBRARY_PATH and LD_PRELOAD."""
        if not any(self.variables.get(name) for name in MISLEADING):
            return self.loading
        return imagine(self, {name: value for name, value in self.variables.items() if name not in MISLEADING})


def meet(options: Options, variables: Mapping[str, str] | None = None) -> TargetEnvironment:
    """The environment of a program that would be started here and now."""
    variables = dict(os.environ) if variables is None else variables
    return TargetEnvironment(find_interpreter(options.python, variables), options, variables)


def here() -> Path:
    """The working folder, also where it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD", "/"))


def own_cgroup() -> CgroupState | None:
    group = cgroup_of()
    return group.state() if group else None


def own_limits() -> dict[str, Limit]:
    """A program that is started from here inherits them."""
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: _limit(*resource.getrlimit(getattr(resource, name))) for name in names}


def _limit(soft: int, hard: int) -> Limit:
    return Limit(
        soft=None if soft == resource.RLIM_INFINITY else soft, hard=None if hard == resource.RLIM_INFINITY else hard
    )


def is_used(name: str) -> bool:
    """Whether something can be loaded from a folder of that name among the packages. Not from what pip left
    (`~umpy`) or a user renamed (`numpy.old`): no import can name it. Libraries of wheels and plug-ins are not imported.
    """
    return name.isidentifier() or name.endswith((".libs", ".egg")) or name == PLUGINS


def _is_code(name: str) -> bool:
    """Headers and caches are most of the files."""
    return name not in ("include", "__pycache__", ASIDE)


def _collect(folder: str, found: list[Path], enters: Callable[[str], bool] = _is_code) -> None:
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)  # read to its end: the folders inside are not opened while this one is
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if enters(entry.name) and _is_code(entry.name):
                    _collect(entry.path, found)
            elif entry.name.endswith(".so") or ".so." in entry.name:
                found.append(Path(entry.path))
    except OSError:
        return
