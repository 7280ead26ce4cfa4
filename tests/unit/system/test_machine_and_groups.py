"""Facts of the machine: control groups of both versions, packages found from outside, the kernel log's format."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from faultlens.records.crash import Address, Mapping
from faultlens.system import cgroup, kernel_log
from faultlens.system.cgroup import Cgroup
from faultlens.target_env import packages

V2 = {
    "cgroup.procs": "1\n", "memory.max": "1500000000\n", "memory.current": "1400000000\n",
    "memory.peak": "1499999000\n",
    "memory.events": "low 0\nhigh 0\nmax 37\noom 1\noom_kill 1\n", "pids.max": "max\n", "pids.current": "12\n",
    "pids.events": "max 3\n",
}  # fmt: skip
V1 = {
    "cgroup.procs": "1\n", "memory.limit_in_bytes": "9223372036854771712\n", "memory.usage_in_bytes": "5000\n",
    "memory.max_usage_in_bytes": "6000\n", "memory.failcnt": "0\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
}  # fmt: skip


def make(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_cgroup_v2(tmp_path: Path) -> None:
    state = Cgroup(2, *[make(tmp_path / "job", V2)] * 2).state()
    assert (state.memory_limit, state.memory_failures, state.oom_kills) == (1_500_000_000, 37, 1)
    assert (state.pids_limit, state.pids_used, state.pids_failures) == (None, 12, 3)


def test_cgroup_v1_without_a_limit(tmp_path: Path) -> None:
    state = Cgroup(1, make(tmp_path / "job", V1), None).state()
    assert (state.memory_limit, state.memory_peak, state.oom_kills) == (None, 6000, 2)


def test_the_tightest_limit_up_the_tree_counts(tmp_path: Path) -> None:
    make(tmp_path / "outer", V2 | {"memory.max": "1000\n"})
    inner = make(tmp_path / "outer" / "inner", V2 | {"memory.max": "max\n"})
    assert Cgroup(2, inner, inner).state().memory_limit == 1000


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        ("0::/job\n", 2),
        ("5:memory:/job\n3:pids:/job\n0::/\n", 1),
    ],
)
def test_which_group_a_process_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, version: int) -> None:
    make(tmp_path / "job", V2 | V1)
    mounts = {"unified": tmp_path, "memory": tmp_path, "pids": tmp_path}
    monkeypatch.setattr(cgroup, "_mounts", lambda: mounts)
    monkeypatch.setattr(cgroup, "read_text", lambda _: lines)
    found = cgroup.cgroup_of(1)
    assert found is not None
    assert (found.version, found.memory, found.pids) == (version, tmp_path / "job", tmp_path / "job")


def test_kernel_log_keeps_the_lines_of_these_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [
        (10**15, "python[4242]: segfault at 8 ip 00007f error 4 in libtf.so[1000+2000]"),
        (10**15, "Memory cgroup out of memory: Killed process 4242 (python) total-vm:1kB"),
        (10**15, "NVRM: Xid (PCI:0000:01:00): 31, pid=77, name=python3"),
        (10**15, "python[42]: segfault at 8"),
        (1, "python[4242]: segfault long ago"),
    ]
    monkeypatch.setattr(kernel_log, "_read_log", lambda: log)
    lines = kernel_log.kernel_log_lines([4242], since=time.time())
    assert lines is not None
    assert [line.split(":")[0] for line in lines] == ["python[4242]", "Memory cgroup out of memory", "NVRM"]


def test_a_kernel_log_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "_read_log", lambda: None)
    assert kernel_log.kernel_log_lines([1], 0) is None


def mapped(*paths: str) -> list[Mapping]:
    return [Mapping(start=Address(0), end=Address(1), permissions="r-xp", path=path) for path in paths]


def test_packages_are_found_by_their_folders(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.12/site-packages"
    (site / "numpy-2.1.0.dist-info").mkdir(parents=True)
    (site / "tensorflow_cpu-2.21.0.dist-info").mkdir()
    found = packages.find_python(
        mapped("/usr/lib/libpython3.12.so.1.0", f"{site}/numpy/core.so"), "/nowhere/bin/python3.12"
    )
    assert found is not None
    assert found.version == "3.12"
    assert [(package.name, package.version) for package in found.packages] == [
        ("numpy", "2.1.0"),
        ("tensorflow_cpu", "2.21.0"),
    ]


def test_no_python_in_the_process() -> None:
    assert packages.find_python(mapped("/usr/bin/cat", "/usr/lib/libc.so.6", "[stack]"), "/usr/bin/cat") is None


def test_the_virtual_environment_is_told_by_its_packages(tmp_path: Path) -> None:
    """`python train.py` in an activated environment: the command names no folder."""
    (tmp_path / "pyvenv.cfg").touch()
    libraries = mapped(f"{tmp_path}/lib/python3.11/site-packages/numpy/core.so", "/usr/lib/libpython3.11.so.1.0")
    found = packages.find_python(libraries, "/usr/bin/python3.11")
    assert found and found.prefix == str(tmp_path)


def test_a_library_that_faultlens_brought_along_tells_nothing(tmp_path: Path) -> None:
    """pipx and uv put it into a virtual environment of its own."""
    (tmp_path / "pyvenv.cfg").touch()
    agent = f"{tmp_path}/lib/python3.12/site-packages/faultlens/capture/agent/libfaultlens_agent.so"
    found = packages.find_python(mapped(agent, "/nowhere/bin/python3.10"), "/nowhere/bin/python3.10")
    assert found and (found.version, found.prefix) == ("3.10", None)
    assert packages.find_python(mapped(agent, "/usr/bin/cat"), "/usr/bin/cat") is None


@pytest.mark.parametrize(("shared", "seen"), [("false", {"own"}), ("true", {"own", "base", "old"})])
def test_an_environment_sees_the_packages_below_it_only_where_it_says_so(
    tmp_path: Path, shared: str, seen: set[str]
) -> None:
    base, root = tmp_path / "base", tmp_path / "venv"
    for folder, name in (
        (base, "base-1.0.dist-info"), (base, "own-0.1.dist-info"), (base, "old-2.0-py3.12.egg-info"),
        (root, "own-1.0.dist-info"),
    ):  # fmt: skip
        (folder / "lib/python3.12/site-packages" / name).mkdir(parents=True)
    (root / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = {shared}\n")
    found = packages.find_python(mapped("/x/libpython3.12.so.1.0"), f"{base}/bin/python3.12", str(root))
    assert found is not None
    assert {package.name for package in found.packages} == seen
    assert next(package for package in found.packages if package.name == "own").version == "1.0"
