"""Where the sanitizers are, and how the distribution gives those that are missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from faultlens.errors import FaultlensError

INSTALL_SECONDS = 900.0
_SCUDO = (
    "/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so",
    "/usr/lib/llvm-*/lib/clang/*/lib/x86_64-*-linux-gnu/libclang_rt.scudo_standalone.so",
    "/usr/lib*/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so",
    "/usr/lib*/clang/*/lib/x86_64-*-linux-gnu/libclang_rt.scudo_standalone.so",
)
_MALLOC_DEBUG = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib")


class Tool(NamedTuple):
    name: str
    find: Callable[[], Path | None]
    apt: str  # a package, or a pattern of which the newest is taken; empty: the distribution has none
    dnf: str
    elsewhere: str = ""  # where it comes from instead


def runtime(name: str) -> Path | None:
    """A library that belongs to the compiler: libasan.so."""
    if (compiler := shutil.which("g++")) is None:
        return None
    asked = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True)
    path = Path(asked.stdout.strip())
    return path.resolve() if path.is_absolute() and path.exists() else None


def _scudo() -> Path | None:
    found = [path for pattern in _SCUDO for path in Path("/").glob(pattern.lstrip("/"))]
    return max(found, key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))], default=None)


def _malloc_debug() -> Path | None:
    paths = (Path(folder) / "libc_malloc_debug.so.0" for folder in _MALLOC_DEBUG)
    return next((path for path in paths if path.exists()), None)


def _program(name: str) -> Path | None:
    return Path(found) if (found := shutil.which(name)) else None


def _of_cuda(name: str) -> Path | None:
    """A program of CUDA's, which is often not on the PATH."""
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda")
    named = (Path(home) / folder / name for home in homes if home for folder in ("bin", "compute-sanitizer"))
    return _program(name) or next((path for path in named if path.is_file()), None)


def nvcc() -> Path | None:
    return _of_cuda("nvcc")


def cuda_home(compiler: Path) -> Path:
    """As the compiler itself sees it: what is on the PATH may be a script."""
    asked = subprocess.run([str(compiler), "--dryrun", "-E", "-x", "cu", "/dev/null"], capture_output=True, text=True)
    found = re.search(r"^#\$ TOP=(.+)$", asked.stderr, re.M)
    return Path(found[1]).resolve() if found else compiler.resolve().parent.parent


COMPILER = Tool("g++", lambda: _program("g++"), "g++", "gcc-c++")
ASAN = Tool("AddressSanitizer's library", lambda: runtime("libasan.so"), "g++", "libasan")
UBSAN = Tool("UndefinedBehaviorSanitizer's library", lambda: runtime("libubsan.so"), "g++", "libubsan")
STDCXX = Tool("libstdc++", lambda: runtime("libstdc++.so.6"), "g++", "libstdc++")
TSAN = Tool("ThreadSanitizer's library", lambda: runtime("libtsan.so"), "g++", "libtsan")
SCUDO = Tool("the allocator with GWP-ASan", _scudo, r"^libclang-rt-[0-9]+-dev$", "compiler-rt")
MALLOC_DEBUG = Tool("libc_malloc_debug.so.0", _malloc_debug, "libc6", "glibc")
COMPUTE_SANITIZER = Tool(
    "compute-sanitizer", lambda: _of_cuda("compute-sanitizer"), "", "", "It comes with NVIDIA's CUDA toolkit."
)
VALGRIND = Tool("valgrind", lambda: _program("valgrind"), "valgrind", "valgrind")


def install_command(tool: Tool) -> list[str] | None:
    """What installs it here, if the distribution is known."""
    if shutil.which("apt-get") and tool.apt:
        return ["apt-get", "install", "-y", _package(tool.apt)]
    if shutil.which("dnf") and tool.dnf:
        return ["dnf", "install", "-y", tool.dnf]
    return None


def _package(name: str) -> str:
    """Of packages that carry a version in their name the newest."""
    if not name.startswith("^"):
        return name
    asked = subprocess.run(["apt-cache", "search", "--names-only", name], capture_output=True, text=True)
    found = [line.split()[0] for line in asked.stdout.splitlines() if line.strip()]
    number = re.compile(r"\d+")
    return max(found, key=lambda each: int((number.search(each) or ["0"])[0]), default="libclang-rt-14-dev")


def install(tool: Tool, command: list[str]) -> Path:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FaultlensError(f"{tool.name} could not be installed: {error}.", f"Try: {' '.join(command)}") from error
    found = tool.find()
    if done.returncode or found is None:
        said = (done.stderr.strip().splitlines() or ["it was not there afterwards"])[-1]
        raise FaultlensError(f"{tool.name} could not be installed: {said}.", f"Try: {' '.join(command)}")
    return found
