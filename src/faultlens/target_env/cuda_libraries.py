"""Which CUDA libraries TensorFlow would find, by the rules of the loader; none of them is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from faultlens.records.crash import Record
from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError
from faultlens.system.loader import Library, Process, this_system
from faultlens.target_env.target import TargetEnvironment

DRIVER = "libcuda.so.1"
# TensorFlow opens these before it registers a GPU, and uses the CPU if one is missing. Their versions in each CUDA.
_VERSIONS: Mapping[int, Mapping[str, str]] = {
    11: {"cudart": "11.0", "cublas": "11", "cublasLt": "11", "cufft": "10", "cusolver": "11", "cusparse": "11"},
    12: {"cudart": "12", "cublas": "12", "cublasLt": "12", "cufft": "11", "cusolver": "11", "cusparse": "12"},
    13: {"cudart": "13", "cublas": "13", "cublasLt": "13", "cufft": "12", "cusolver": "12", "cusparse": "12"},
}
# The RUNPATH of the one that opens them leads to the nvidia-* wheels. It is known by what it says when it fails.
_OPENERS = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2", "python/_pywrap_tensorflow_internal.so")
_COMPLAINT = b"Could not load dynamic library '\0"


class CudaLibraries(Record, frozen=True):
    found: Mapping[str, str] = {}  # name -> file, with links resolved
    missing: tuple[str, ...] = ()


def names_for(cuda: int, cudnn: str | None) -> tuple[str, ...]:
    """What a build for this CUDA opens; nothing where the CUDA is not known."""
    versions = {**_VERSIONS[cuda], **({"cudnn": cudnn} if cudnn else {})} if cuda in _VERSIONS else {}
    return tuple(f"lib{name}.so.{version}" for name, version in versions.items())


def driver_library(target: TargetEnvironment) -> str | None:
    """The libcuda.so.1 that a program would get."""
    process = _imagined(target)
    return _opened(process, DRIVER, None) if process else None


def cuda_libraries(target: TargetEnvironment, names: Iterable[str]) -> CudaLibraries | None:
    """None where the loading of the interpreter or of TensorFlow cannot be followed."""
    process, tensorflow = _imagined(target), target.tensorflow
    if process is None or tensorflow is None:
        return None
    openers = [path for name in _OPENERS if (path := tensorflow.folder / name).exists()]
    openers = next(([path] for path in openers if _complains(path)), openers)
    callers = [opened.library for path in openers if not (opened := process.open(str(path))).faults]
    if not callers:
        return None
    found = {name: next(filter(None, (_opened(process, name, caller) for caller in callers)), None) for name in names}
    return CudaLibraries(
        found={name: path for name, path in found.items() if path},
        missing=tuple(name for name, path in found.items() if not path),
    )


def version_of(path: str) -> str | None:
    """The version in a library's file name: "580.95.05" of libcuda.so.580.95.05."""
    match = re.search(r"\.so\.(\d+(?:\.\d+)+)$", path)
    return match[1] if match else None


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _imagined(target: TargetEnvironment) -> Process | None:
    try:
        system = this_system(target.machine.cpu_flags)
        return Process(target.interpreter.executable, target.variables, target.directory, system)
    except (OSError, ElfError):
        return None


def _opened(process: Process, name: str, caller: Library | None) -> str | None:
    opened = process.open(name, caller)
    return os.path.realpath(opened.library.path) if opened.library and not opened.faults else None


def _complains(path: Path) -> bool:
    try:
        with Binary(path) as binary:
            return binary.find_constant(_COMPLAINT) >= 0
    except (OSError, ElfError):
        return False
