"""How a custom op is built: with the compiler and the flags that fit the installed TensorFlow."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faultlens.errors import FaultlensError
from faultlens.system.elf import ElfError
from faultlens.target_env.op_library import Interface, build_words, interface_of
from faultlens.target_env.target import Options, meet

SECONDS = 600.0
_ERROR = re.compile(r"\berror: |undefined (reference|symbol)|cannot find|multiple definition")
_SAID = 4000  # characters of the compiler's complaints that are shown
CUDA = ".cu"
SOURCES = (".cc", ".cpp", ".cxx", ".c", CUDA)


@dataclass(frozen=True)
class Target:
    """What ops are built for."""

    python: str  # has TensorFlow
    interface: Interface


def target_of(python: str | None = None) -> Target:
    target = meet(Options(python=python))
    executable = target.interpreter.executable
    if target.tensorflow is None:
        raise FaultlensError(f"{executable} has no TensorFlow.", "Name a Python that has it with --python.")
    try:
        return Target(executable, interface_of(target.tensorflow))
    except (OSError, ElfError) as error:
        raise FaultlensError(f"TensorFlow's libraries cannot be read: {error}.", "Install it again.") from error


def build_command(
    sources: Sequence[Path], library: Path, target: Target, extra: Sequence[str] = (), compiler: str = "g++"
) -> list[str]:
    return [compiler, *build_words([str(source) for source in sources], str(library), target.interface), *extra]


def build(
    sources: Sequence[Path], library: Path, target: Target, extra: Sequence[str] = (), compiler: str = "g++"
) -> None:
    """Raises FaultlensError with what the compiler said."""
    if shutil.which(compiler) is None:
        raise FaultlensError(f"There is no {compiler} here.", "On Debian: apt-get install g++")
    words = build_command(sources, library, target, extra, compiler)
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise FaultlensError(f"{compiler} did not end within {SECONDS:.0f} s.", "Build it yourself.") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        errors = [line for line in lines if _ERROR.search(line)]  # warnings may come by the hundred
        said = "\n".join(errors or lines)[:_SAID] or f"exit status {done.returncode}"
        raise FaultlensError(f"{', '.join(map(str, sources))} cannot be built: {said}", "Mend the source first.")
