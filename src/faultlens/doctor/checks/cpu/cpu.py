from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from faultlens.doctor.check import Check, fix
from faultlens.knowledge.cpu_features import spoken
from faultlens.knowledge.cpus import cpu_flags, level
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding, Repair
from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError
from faultlens.system.machine import own_emulator
from faultlens.target_env.distributions import Distribution, normal
from faultlens.target_env.numpy_baseline import numpy_baseline
from faultlens.target_env.startup_code import Need, startup_needs, unasked_needs
from faultlens.target_env.target import TargetEnvironment

# Libraries that come in several copies, of which the program loads the one for its CPU.
_CHOSEN_BY_NAME = re.compile(
    r"(?<![a-z])(avx\w*|ssse3|sse[234]\w*|fma[34]?|amx\w*|haswell|skylake\w*|skx|zen[1-5]|x86[-_]64[-_]v[234])(?![a-z])",
    re.IGNORECASE,
)
# What the wheels of PyPI need when loaded, as measured: a build of one's own may need more.
_WHEELS_NEED = {"tensorflow": frozenset({"avx"}), "numpy": cpu_flags("x86-64-v2")}
SHOWN = 3


class Cpu(NamedTuple):
    name: str  # "AMD EPYC 9R14", "nehalem"
    flags: frozenset[str]
    source: str  # where the flags are from
    here: bool = True  # this machine's

    @property
    def called(self) -> str:
        return "this CPU" if self.here else self.name


class Library(NamedTuple):
    path: Path
    needs: tuple[Need, ...]  # when it is loaded
    later: tuple[Need, ...] = ()  # when its functions are called, which they do not make sure of


class Package(NamedTuple):
    """What is installed under one name, and what its code needs when it is loaded."""

    name: str
    libraries: tuple[Library, ...]
    distribution: Distribution | None = None
    baseline: tuple[str, frozenset[str]] | None = None  # what it says that it was built for

    @property
    def needs(self) -> frozenset[str]:
        code = (need.flags for library in self.libraries for need in library.needs)
        return frozenset().union(*code, self.baseline[1] if self.baseline else ())

    @property
    def titled(self) -> str:
        name = "TensorFlow" if self.name == "tensorflow" else self.name
        return f"{name} {self.distribution.version}" if self.distribution else name


class CpuFeatures(Check):
    """
    What native libraries need of the CPU in code that certainly runs when they are loaded, against what it has.

    The initialisers of each library are decoded, and the functions that they call. What a branch can skip does not
    count, so code that is chosen at run time (oneDNN, OpenBLAS, NumPy's dispatched loops) is no finding. A quick look
    reads up to 64 initialisers of each library, `--deep` all of them. NumPy names the CPU it was built for in its own
    library, and refuses a lesser one with a RuntimeError. Of a custom op that is named (`--op`), and with
    `--deep` of packages that are not from an index, all code is read: where it never asks the CPU what it can, as after
    `-march=native`, what it uses is a warning. On SandyBridge none of 676 libraries (below 4 MB, of common wheels) is.

    Measured under `qemu-x86_64 -cpu`: the wheels of TensorFlow 2.12 to 2.21 need AVX and nothing newer: SIGILL on
    Nehalem, fine on SandyBridge. NumPy 2.4 needs x86-64-v2, NumPy 2.3 does not. SciPy, h5py, Pillow and torch
    work on Nehalem.
    """

    name = "cpu"
    looks_at = "CPU features that installed libraries need when they are loaded"
    position = 10
    causes = ("illegal-instruction",)

    def examine(self, target: TargetEnvironment) -> Examination:
        if target.options.cpu is not None:
            cpu = Cpu(target.options.cpu, cpu_flags(target.options.cpu), "QEMU's models and -march names", here=False)
        elif emulator := own_emulator():
            return self.skipped(f"{emulator} stands in for the CPU: name the one you mean with --cpu")
        elif not target.machine.cpu_flags:
            return self.skipped("/proc/cpuinfo does not name the features of this CPU: name one with --cpu")
        else:
            model = target.machine.cpu_model or "this CPU"
            cpu = Cpu(model, frozenset(target.machine.cpu_flags), "/proc/cpuinfo")
        return self.judge(cpu, tuple(packages(target)), target.interpreter.executable)

    def examine_named(self, target: TargetEnvironment) -> Examination:
        """The custom ops that were named, on this CPU."""
        model = target.machine.cpu_model or "this CPU"
        cpu = Cpu(model, frozenset(target.machine.cpu_flags), "/proc/cpuinfo")
        return self.judge(cpu, tuple(named_ops(target)), target.interpreter.executable)

    def judge(self, cpu: Cpu, packages: Sequence[Package], python: str) -> Examination:
        able = [package for package in packages if package.needs <= cpu.flags]
        found = [self._finding(cpu, package, python) for package in packages if package not in able]
        for package in able:
            found += [self._later(cpu, each, package, python) for each in package.libraries if _unasked(each, cpu)]
        count = sum(len(package.libraries) for package in packages)
        need = "1 library needs" if count == 1 else f"{count} libraries need"
        return self.judged(
            found,
            f"{cpu.name}: has all that {need} when loaded" if count else f"{cpu.name}: no native libraries here",
            [f"{package.titled} needs {_words(package.needs)}" for package in able if package.needs],
        )

    def _finding(self, cpu: Cpu, package: Package, python: str) -> Finding:
        missing = package.needs - cpu.flags
        guilty = [library for library in package.libraries if _lacking(library, cpu)]
        guilty.sort(key=lambda library: -_size(library.path))
        evidence = [
            (_sentence(library.needs, cpu, f"runs when {library.path.name} is loaded"), str(library.path))
            for library in guilty[:SHOWN]
        ]
        if len(guilty) > SHOWN:
            evidence.append((f"so do {len(guilty) - SHOWN} more of its libraries", "their initialisers"))
        if package.baseline and not package.baseline[1] <= cpu.flags:
            evidence.append((f"it says that it was built for {package.baseline[0]}", "its message in the library"))
        evidence.append((f"{cpu.name} does not have {_words(missing)}", cpu.source))
        if guilty:
            title = f"{package.titled} needs {_words(_lacking(guilty[0], cpu))} when loaded"
            ending = "SIGILL"
        else:
            title, ending = f"{package.titled} needs {_words(missing)}", "it refuses to be imported"
        return self.error(
            f"{title}, which {cpu.called} lacks: {ending}",
            evidence,
            tuple(_fixes(cpu, package, missing, python)),
            repair=_repair(cpu, package, python),
        )

    def _later(self, cpu: Cpu, library: Library, package: Package, python: str) -> Finding:
        missing = _unasked(library, cpu)
        return self.warning(
            f"{library.path.name} uses {_words(missing)}, which {cpu.called} lacks: SIGILL where such code runs",
            (
                (_sentence(library.later, cpu, f"stands in {library.path.name}"), str(library.path)),
                ("nothing in it asks the CPU what it can", "no cpuid in its code, no such function among its imports"),
                (f"{cpu.name} does not have {_words(missing)}", cpu.source),
            ),
            tuple(_fixes(cpu, package, missing, python)),
        )


def packages(target: TargetEnvironment) -> Iterator[Package]:
    """The libraries of the environment and the custom ops that were named, by package."""
    grouped: dict[str, list[Library]] = {}
    for path in target.native_files:
        inside = _inside(str(path), target.interpreter.path)
        if not _CHOSEN_BY_NAME.search(inside):
            name = re.split("[./]", inside, maxsplit=1)[0]
            grouped.setdefault(name, []).extend(_read((path,), target.options.deep))
    for name, libraries in grouped.items():
        own = target.distribution(normal(name))
        if name == "tensorflow" and target.tensorflow:
            own = target.tensorflow.distribution
        if target.options.deep and _built_here(own):
            libraries = [library._replace(later=_read_all(library.path)) for library in libraries]
        folder = next(target.packages_named("numpy"), None) if name == "numpy" else None
        yield Package(name, tuple(libraries), own, numpy_baseline(folder) if folder else None)
    yield from named_ops(target)


def named_ops(target: TargetEnvironment) -> Iterator[Package]:
    for library in _read(target.options.ops, deep=True):
        yield Package(library.path.name, (library._replace(later=_read_all(library.path)),))


def _read(paths: Iterable[Path], deep: bool) -> Iterator[Library]:
    for path in paths:
        try:
            with Binary(path) as binary:
                yield Library(path, startup_needs(binary, all_of_it=deep))
        except (OSError, ElfError):  # the checks of native libraries speak of those
            continue


def _built_here(own: Distribution | None) -> bool:
    """Not from an index: pip notes where else it came from."""
    return own is None or (own.metadata / "direct_url.json").exists()


def _read_all(path: Path) -> tuple[Need, ...]:
    try:
        with Binary(path) as binary:
            return unasked_needs(binary)
    except (OSError, ElfError):
        return ()


def _inside(path: str, folders: Iterable[str]) -> str:
    """The path below the folder where packages are looked for."""
    above = max((folder for folder in folders if path.startswith(f"{folder}/")), key=len, default="")
    return path[len(above) + 1 :] if above else path.rpartition("/")[2]


def _lacking(library: Library, cpu: Cpu) -> frozenset[str]:
    return frozenset().union(*(need.flags for need in library.needs)) - cpu.flags


def _unasked(library: Library, cpu: Cpu) -> frozenset[str]:
    return frozenset().union(*(need.flags for need in library.later)) - cpu.flags


def _sentence(needs: Iterable[Need], cpu: Cpu, happens: str) -> str:
    need = next(need for need in needs if not need.flags <= cpu.flags)
    return f"`{need.text}` at {need.address:#x} {happens}, and needs {_words(need.flags - cpu.flags)}"


def _fixes(cpu: Cpu, package: Package, missing: frozenset[str], python: str) -> Iterator[Fix]:
    pip = f"{python} -m pip"
    march = level(cpu.flags)
    own = package.distribution
    if older := _older_numpy(cpu, package):
        yield fix("install a NumPy whose wheels need less", f"{pip} install '{older}'")
    elif own and package.name in _WHEELS_NEED and _WHEELS_NEED[package.name] <= cpu.flags:
        version = own.version.partition("+")[0]
        yield fix(
            f"install the wheel from PyPI, which needs {_words(_WHEELS_NEED[package.name])} only",
            f"{pip} install --force-reinstall --no-deps --index-url https://pypi.org/simple {own.name}=={version}",
        )
    yield fix(
        f"run it on a CPU with {_words(missing)}",
        f"grep -m1 -ow {' '.join(f'-e {flag}' for flag in sorted(missing))} /proc/cpuinfo",
        "prints the names where the CPU has them",
    )
    if cpu.here and "hypervisor" in cpu.flags:
        yield fix(
            "let the virtual machine see the CPU of its host, which may have more",
            "qemu-system-x86_64 -cpu host …",
            "libvirt: <cpu mode='host-passthrough'/>",
            safe=False,
        )
    if package.name == "tensorflow":
        yield fix(
            f"build TensorFlow for {cpu.called}",
            f"bazel build -c opt --copt=-march={march} //tensorflow/tools/pip_package:wheel",
            "in TensorFlow's source, for hours; older wheels do not help: all since TensorFlow 1.6 need AVX",
            safe=False,
        )
    elif own and package.name != "numpy":  # NumPy's own build options would raise the level again
        yield fix(
            f"build {own.name} for {cpu.called}",
            f"CFLAGS=-march={march} CXXFLAGS=-march={march} {pip} install --force-reinstall --no-deps "
            f"--no-cache-dir --no-binary {own.name} {own.name}=={own.version}",
            safe=False,
        )
    elif not own:
        yield fix(f"build {package.name} for {cpu.called}", f"g++ -march={march} …", "instead of what it was built for")


def _older_numpy(cpu: Cpu, package: Package) -> str | None:
    """NumPy 2.4 was the first whose wheels need x86-64-v2; those before need SSE3."""
    built_for = package.baseline[0] if package.baseline else None
    return "numpy<2.4" if package.name == "numpy" and built_for == "X86_V2" and "pni" in cpu.flags else None


def _repair(cpu: Cpu, package: Package, python: str) -> Repair | None:
    older = _older_numpy(cpu, package)
    if older is None or package.distribution is None or not cpu.here:
        return None
    return Repair(
        commands=((python, "-m", "pip", "install", older),),
        undo=((python, "-m", "pip", "install", f"numpy=={package.distribution.version}"),),
    )


def _words(flags: frozenset[str]) -> str:
    names = sorted(map(spoken, flags))
    if len(names) > SHOWN:
        return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
    return " and ".join(names) or "nothing"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
