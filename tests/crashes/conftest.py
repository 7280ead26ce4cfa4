"""Real programs, really crashed: runs them under faultlens and reads back what was recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faultlens.records import report_file
from faultlens.records.crash import Crash
from faultlens.system.cgroup import cgroup_of

PROGRAMS = Path(__file__).parent / "programs"
FAULTLENS = (sys.executable, "-m", "faultlens")


@dataclass(frozen=True)
class Run:
    returncode: int  # negative: the signal it died by
    stdout: str
    stderr: str
    home: Path
    crash: Crash | None  # None: no report was written

    @property
    def died(self) -> Crash:
        assert self.crash is not None, self.stderr
        return self.crash

    @property
    def saved(self) -> list[Path]:
        return sorted(self.home.glob("*/*/report.json")) + sorted(self.home.glob("*/report.json"))


Runner = Callable[..., Run]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """run(command, options=…) → Run. A str is Python code for the interpreter of the tests."""

    def start(
        command: str | Sequence[str | Path],
        *,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        timeout: float = 60,
        **popen: Any,
    ) -> Run:
        words = [sys.executable, "-c", command] if isinstance(command, str) else [str(word) for word in command]
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        home = tmp_path / "home"
        done = subprocess.run(
            [*prefix, *FAULTLENS, "run", "--json", str(report), *options, "--", *words],
            env={**os.environ, "FAULTLENS_HOME": str(home), **(env or {})},
            capture_output=True,
            timeout=timeout,
            cwd=popen.pop("cwd", tmp_path),
            **popen,
        )
        crash = report_file.read(report).crash if report.exists() else None
        return Run(done.returncode, _text(done.stdout), _text(done.stderr), home, crash)

    return start


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of native deaths, compiled with debug information."""
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    library = tmp_path_factory.mktemp("native") / "libnative.so"
    source = PROGRAMS / "native.cc"
    subprocess.run(
        ["g++", "-O1", "-g", "-w", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True, timeout=120
    )
    return library


@pytest.fixture
def call(native: Path) -> Callable[..., str]:
    """Python code that calls a function of the native library: call("read_null")."""

    def code(expression: str, before: str = "", after: str = "") -> str:
        expression = expression if "(" in expression else expression + "()"
        return f"import ctypes\nlib = ctypes.CDLL({str(native)!r})\n{before}\nlib.{expression}\n{after}\n"

    return code


@pytest.fixture
def memory_limit() -> Iterator[list[str]]:
    """A command prefix that runs the rest in a control group of 300 MB."""
    cgroup = cgroup_of()
    if os.geteuid() or cgroup is None or cgroup.memory is None:
        pytest.skip("needs root and a memory control group")
    name = f"faultlens-test-{os.getpid()}"
    root = next(p for p in (cgroup.memory, *cgroup.memory.parents) if not (p.parent / "cgroup.procs").exists())
    folder = root / name
    try:
        if cgroup.version == 2:
            (root / "cgroup.subtree_control").write_text("+memory")
        folder.mkdir()
        (folder / ("memory.max" if cgroup.version == 2 else "memory.limit_in_bytes")).write_text("300000000")
    except OSError as error:
        pytest.skip(f"cannot make a control group: {error}")
    yield ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"]
    for _ in range(50):
        try:
            folder.rmdir()
            return
        except OSError:
            time.sleep(0.1)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
