"""Where faultlens itself may open or start nothing more: programs run all the same, other verbs say one sentence."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faultlens.cli.shortage import shortage
from faultlens.system.cgroup import cgroup_of

PROGRAM = ("sh", "-c", "echo lives; exit 7")
Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    def run(*words: str, files: int | None = None, prefix: list[str] | None = None) -> subprocess.CompletedProcess[str]:
        def limit() -> None:
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

        return subprocess.run(
            [*(prefix or []), sys.executable, "-m", "faultlens", *words],
            env={**os.environ, "FAULTLENS_HOME": str(tmp_path / "home")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=limit,
        )

    return run


@pytest.fixture
def one_process() -> Iterator[list[str]]:
    """The prefix of a command that runs in a control group with room for nobody else."""
    own = cgroup_of()
    if os.geteuid() or own is None or own.pids is None:
        pytest.skip("needs root and a control group for processes")
    root = next(level for level in (own.pids, *own.pids.parents) if not (level.parent / "cgroup.procs").exists())
    group = root / f"faultlens-shortage-{os.getpid()}"
    try:
        if own.version == 2:
            (root / "cgroup.subtree_control").write_text("+pids")
        group.mkdir()
        (group / "pids.max").write_text("1")
    except OSError as error:
        pytest.skip(f"cannot make a control group: {error}")
    yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    group.rmdir()


@pytest.mark.parametrize("files", [6, 7, 8])
def test_a_program_runs_where_faultlens_may_open_nothing(start: Start, files: int) -> None:
    done = start("run", "--", *PROGRAM, files=files)
    assert (done.returncode, done.stdout) == (7, "lives\n")
    assert done.stderr == (
        "faultlens: the program runs without faultlens. "
        f"Too many open files: faultlens may open {files}. Allow more: ulimit -n 1024.\n"
    )
    assert start("run", "-q", "--", *PROGRAM, files=files).stderr == ""


def test_a_program_runs_where_faultlens_may_start_nothing(start: Start, one_process: list[str]) -> None:
    done = start("run", "--", *PROGRAM, prefix=one_process)
    assert (done.returncode, done.stdout) == (7, "lives\n")
    assert "the program runs without faultlens. No further process or thread can be started." in done.stderr


@pytest.mark.parametrize("verb", [("show",), ("explain", "core"), ("doctor",), ("verify", "."), ("scan", ".")])
@pytest.mark.parametrize("files", [5, 8])
def test_no_verb_ends_with_a_traceback(start: Start, tmp_path: Path, verb: tuple[str, ...], files: int) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF")
    done = start(*verb, files=files)
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1


def test_what_is_no_shortage() -> None:
    assert shortage(OSError(errno.ENOSPC, "full")) is None
    assert shortage(RuntimeError("something else")) is None
    assert shortage(BlockingIOError(errno.EAGAIN, "a full pipe", 0)) is None
    assert "process" in str(shortage(BlockingIOError(errno.EAGAIN, "fork")))
    assert "process" in str(shortage(RuntimeError("can't start new thread")))
    assert "memory" in str(shortage(MemoryError()))
