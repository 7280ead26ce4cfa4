"""Difficult places to run in: no ptrace, no root, no compiler, no room, other preloaded libraries."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pystack
import pytest

from faultlens.records.crash import Crash

Call = Callable[..., str]
PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]


def python_lines(crash: Crash) -> list[int | None]:
    return [frame.line for frame in crash.launching_thread.frames if frame.kind == "python"]


def test_ptrace_forbidden(run, call: Call, tmp_path: Path) -> None:
    subprocess.run(["gcc", "-o", tmp_path / "deny", PROGRAMS / "deny.c"], check=True)
    done = run(call("read_null"), prefix=[str(tmp_path / "deny")])
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.fault.address, done.died.fault.access) == (0, "read")
    assert done.died.crashed_thread.frames[0].function == "read_null"
    assert python_lines(done.died)[0] == 4
    assert any("ptrace is not allowed" in gap for gap in done.died.gaps)


def test_files_may_not_grow(tmp_path: Path) -> None:
    """The memory that the agent shares with the supervisor counts as a file: ptrace does without."""
    command = [sys.executable, "-m", "faultlens", "run", "--", "echo", "as always"]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "as always\n")
    assert "using ptrace" in done.stderr


def test_jemalloc_preloaded(run, call: Call) -> None:
    jemalloc = next(iter(Path("/usr/lib").glob("*/libjemalloc.so.2")), None)
    if jemalloc is None:
        pytest.skip("needs libjemalloc2")
    before = "print(any('jemalloc' in line for line in open('/proc/self/maps')))"
    done = run(call("read_null", before=before), env={"LD_PRELOAD": str(jemalloc)})
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "True\n")
    assert done.died.fault.address == 0
    assert done.died.program.environment["LD_PRELOAD"].startswith(str(jemalloc))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_an_ordinary_user(open_folder: Path, native: Path) -> None:
    if os.geteuid():
        pytest.skip("is one already: the other tests show it")
    library = shutil.copy(native, open_folder / "libnative.so")
    site = Path(pystack.__file__).parents[1]
    env = {
        **os.environ,
        "FAULTLENS_HOME": str(open_folder / "home"),
        "PYTHONPATH": f"{ROOT / 'src'}:{site}",
        "HOME": str(open_folder),
    }

    def as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, user="nobody", group="nogroup", extra_groups=[], cwd=open_folder, env=env, capture_output=True,
            text=True,
        )  # fmt: skip

    # The interpreter of the tests may lie in a folder that is closed to others.
    system_python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, system_python):
        try:
            reachable = as_nobody(python, "-c", "import pystack, faultlens, msgspec").returncode == 0
        except OSError:
            continue
        if reachable:
            break
    else:
        pytest.skip("no Python here that another user can run with our packages")
    program = f"import ctypes; ctypes.CDLL({str(library)!r}).read_null()"
    done = as_nobody(python, "-m", "faultlens", "run", "--json", "r.json", "--", python, "-c", program)
    assert done.returncode == -signal.SIGSEGV, done.stderr
    assert "read_null" in done.stderr
    assert (open_folder / "r.json").stat().st_uid != 0
    assert list((open_folder / "home").glob("*/report.json"))


@pytest.mark.parametrize("limit", [0, resource.RLIM_INFINITY])
def test_the_core_file_is_what_it_was(run, call: Call, tmp_path: Path, limit: int) -> None:
    if Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("cores go elsewhere on this machine")
    if limit and resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("core files are not allowed here")
    done = run(call("read_null"), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (limit, limit)))
    assert done.returncode == -signal.SIGSEGV
    cores = [*tmp_path.glob("core"), *tmp_path.glob("core.*")]
    assert len(cores) == (1 if limit else 0)
    assert done.died.outcome.core_dumped == bool(limit)
    if cores:
        from faultlens.inspection.corefile.read import read_core

        crash = read_core(cores[0])
        assert (crash.fault.code, crash.fault.address, crash.pid) == ("SEGV_MAPERR", 0, done.died.pid)


def test_the_kernel_logs_the_fault_as_always(run, call: Call) -> None:
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("may not read the kernel log")
    done = run(call("read_wild"))
    if not done.died.kernel_log:
        pytest.skip("this kernel does not log faults")
    assert any("segfault at 12345678000" in line for line in done.died.kernel_log)


def test_a_report_folder_that_cannot_be_made(run, call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run(call("read_null"), env={"FAULTLENS_HOME": str(tmp_path / "file" / "home")})
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("FAULTLENS_HOME") == 1
    assert "read_null" in done.stderr


def test_a_full_report_folder(run, call: Call, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mount = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=8k tmpfs {full} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True).returncode:
        pytest.skip("may not mount a file system")
    done = run(call("read_null"), prefix=mount, env={"FAULTLENS_HOME": str(full)})
    assert done.returncode == -signal.SIGSEGV
    assert "\nfaultlens: The report could not be kept" in done.stderr
    assert "full disk" in done.stderr
    assert "read_null" in done.stderr


def test_an_unwritable_json_path(tmp_path: Path) -> None:
    """Told before the program runs for hours."""
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "run", "--json", "/no/such/folder/r.json", "--", "touch", "ran"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert not (tmp_path / "ran").exists()
    assert done.stderr.startswith("faultlens: Cannot write the report to /no/such/folder/r.json")


def test_secrets_stay_out_of_the_report(run, call: Call, tmp_path: Path) -> None:
    env = {"DB_PASSWORD": "hunter2-hunter2", "MY_SETTING": "quiet"}
    code = call("read_null", before="import os; print(os.environ['DB_PASSWORD'], flush=True)")
    done = run([sys.executable, "-c", code, "--token", "s3cr3t-argument"], env=env)
    text = (tmp_path / "report.json").read_text()
    assert "hunter2" not in text and "s3cr3t-argument" not in text and "quiet" not in text
    assert done.died.program.command[-2:] == ("--token", "<redacted>")
    assert done.died.program.environment["MY_SETTING"] == "<redacted>"
    run([sys.executable, "-c", code], env=env, options=["--unredacted"])
    assert "hunter2" in (tmp_path / "report.json").read_text()


def test_installed_without_a_compiler(call: Call, tmp_path: Path) -> None:
    """pip builds the package all the same, and ptrace takes over."""
    source = shutil.copytree(ROOT, tmp_path / "source", ignore=shutil.ignore_patterns(".venv", ".git", "*.so", "build"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*pip, "--target", tmp_path / "site", source],
        check=True,
        env={**os.environ, "CC": "/bin/false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "run", "--", sys.executable, "-c", call("read_null")],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site"), "FAULTLENS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("the capture agent was not built") == 1
    assert "read_null" in done.stderr
