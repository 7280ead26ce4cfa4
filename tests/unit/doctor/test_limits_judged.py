"""Limits, judged against what a TensorFlow program needs: constructed allowances, control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultlens.doctor.checks.limits.address_space import AddressSpace
from faultlens.doctor.checks.limits.cpu_time import CpuTime
from faultlens.doctor.checks.limits.evidence import CrashEvidence
from faultlens.doctor.checks.limits.memory import Memory
from faultlens.doctor.checks.limits.open_files import OpenFiles
from faultlens.doctor.checks.limits.storage import SHM, Storage
from faultlens.doctor.checks.limits.threads import ThreadCount
from faultlens.knowledge.needs import threads
from faultlens.records.crash import Limit, MachineState
from faultlens.records.finding import Examination
from faultlens.system import cgroup
from faultlens.system.allowance import Allowance
from faultlens.system.cgroup import Cgroup, Room
from faultlens.system.crash_settings import CrashSettings
from faultlens.system.storage import Folder, look_at, nearest, would_be

MIB, GIB = 1 << 20, 1 << 30
NO_LIMIT = Limit(soft=None, hard=None)
USUAL = {
    "RLIMIT_AS": NO_LIMIT,
    "RLIMIT_DATA": NO_LIMIT,
    "RLIMIT_STACK": Limit(soft=8 * MIB, hard=None),
    "RLIMIT_NPROC": Limit(soft=96349, hard=96349),
}
TWO = threads(2, {}, (2, 21))
MACHINE = MachineState(memory_total=16 * GIB, memory_available=12 * GIB)


def group(limit: int, used: int, where: str = "/sys/fs/cgroup/job/pids.max") -> Room:
    return Room(limit=limit, used=used, where=where)


def only(examination: Examination) -> tuple[str, str]:
    """Severity and title of the one finding, which says how to go on."""
    (finding,) = examination.findings
    assert finding.evidence
    assert all(fix.command for fix in finding.fixes)
    assert examination.mark == finding.severity
    return finding.severity, finding.title


# ------------------------------------------------------------------------------------------ threads


@pytest.mark.parametrize(("cpus", "compute", "train"), [(1, 4, 13), (2, 7, 19), (64, 193, 391), (128, 321, 711)])
def test_threads_as_they_were_counted(cpus: int, compute: int, train: int) -> None:
    assert (threads(cpus, {}, (2, 21)).to_compute, threads(cpus, {}, (2, 21)).to_train) == (compute, train)


def test_variables_and_older_versions_start_fewer() -> None:
    assert threads(16, {}, (2, 15)).to_train == 69
    fewer = {"OPENBLAS_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    assert threads(16, fewer, (2, 21)).to_train == 58
    assert threads(16, {"OMP_NUM_THREADS": "many"}, None) == threads(16, {}, None)


@pytest.mark.parametrize(("left", "severity"), [(6, "error"), (7, "warning"), (18, "warning"), (19, None)])
def test_room_for_threads_in_the_control_group(left: int, severity: str | None) -> None:
    found = ThreadCount().judge(USUAL, Allowance(cpus=2, tasks=group(50, 50 - left)), TWO)
    if severity is None:
        assert (found.mark, found.findings) == ("ok", ())
    else:
        assert only(found)[0] == severity
        assert f"(pids.max 50) leaves room for {left} threads" in found.summary


def test_the_users_limit_counts_what_runs_already() -> None:
    limits = USUAL | {"RLIMIT_NPROC": Limit(soft=100, hard=100)}
    tight = ThreadCount().judge(limits, Allowance(cpus=2, user_tasks=90), TWO)
    assert only(tight) == (
        "warning",
        "RLIMIT_NPROC (ulimit -u 100) leaves room for 10 threads: training for two epochs needs 19",
    )
    assert "sudo prlimit --pid $$ --nproc=" in tight.findings[0].fixes[0].command
    assert ThreadCount().judge(limits, Allowance(cpus=2, user_tasks=20), TWO).mark == "ok"
    # It does not bind root, however small it is.
    assert ThreadCount().judge(limits, Allowance(cpus=2, user_tasks=None), TWO).mark == "ok"


def test_the_kernels_own_maximum() -> None:
    room = Room(limit=400, used=395, where="/proc/sys/kernel/pid_max")
    found = ThreadCount().judge(USUAL, Allowance(cpus=2, all_tasks=room), TWO)
    assert only(found)[0] == "error"
    assert found.findings[0].fixes[0].command.startswith("sudo sysctl kernel.pid_max=")


@pytest.mark.parametrize(("stack", "mark"), [(64 << 10, "error"), (256 << 10, "ok"), (8 * MIB, "ok"), (None, "ok")])
def test_stack_size(stack: int | None, mark: str) -> None:
    limits = USUAL | {"RLIMIT_STACK": Limit(soft=stack, hard=None)}
    found = ThreadCount().judge(limits, Allowance(cpus=2), TWO)
    assert found.mark == mark
    if mark == "error":
        assert found.findings[0].causes == ("thread-stack-too-small",)
        assert found.findings[0].fixes[0].command == "ulimit -S -s 8192"


# ------------------------------------------------------------------------------------ address space


@pytest.mark.parametrize(
    ("name", "size", "severity"),
    [
        ("RLIMIT_AS", 600 * MIB, "error"),
        ("RLIMIT_AS", 1500 * MIB, "warning"),
        ("RLIMIT_AS", 2 * GIB, None),
        ("RLIMIT_DATA", 150 * MIB, "error"),
        ("RLIMIT_DATA", 300 * MIB, "warning"),
        ("RLIMIT_DATA", 600 * MIB, None),
    ],
)
def test_address_space(name: str, size: int, severity: str | None) -> None:
    found = AddressSpace().judge(USUAL | {name: Limit(soft=size, hard=None)}, Allowance(cpus=2), TWO, (2, 21))
    if severity is None:
        assert found.mark == "ok"
    else:
        assert only(found)[0] == severity
        assert found.findings[0].fixes[0].command == f"ulimit -S -{'v' if name == 'RLIMIT_AS' else 'd'} unlimited"


def test_more_cpus_need_more_address_space() -> None:
    limits = USUAL | {"RLIMIT_AS": Limit(soft=5 * GIB, hard=5 * GIB)}
    assert AddressSpace().judge(limits, Allowance(cpus=2), TWO, (2, 21)).mark == "ok"
    many = AddressSpace().judge(limits, Allowance(cpus=64), threads(64, {}, (2, 21)), (2, 21))
    assert only(many)[0] == "warning"
    assert many.findings[0].fixes[0].command == "sudo prlimit --pid $$ --as=unlimited"
    # Small stacks need less of it.
    small = limits | {"RLIMIT_STACK": Limit(soft=MIB, hard=None)}
    assert AddressSpace().judge(small, Allowance(cpus=64), threads(64, {}, (2, 21)), (2, 21)).mark == "ok"


def test_a_kernel_that_promises_no_more_than_it_has() -> None:
    promised = Room(limit=4 * GIB, used=4 * GIB - 10 * MIB, where="/proc/meminfo: CommitLimit")
    found = AddressSpace().judge(USUAL, Allowance(cpus=2, commit=promised), TWO, (2, 21))
    assert only(found)[0] == "warning"
    assert "10 MiB more memory (vm.overcommit_memory 2)" in found.summary


def test_older_versions_need_less_address_space() -> None:
    limits = USUAL | {"RLIMIT_AS": Limit(soft=900 * MIB, hard=None)}
    marks = [AddressSpace().judge(limits, Allowance(cpus=2), TWO, version).mark for version in ((2, 21), (2, 18), None)]
    assert marks == ["error", "warning", "warning"]


# ------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("left", "mark"), [(100, "error"), (180, "warning"), (300, "ok")])
def test_memory_of_the_control_group(left: int, mark: str) -> None:
    room = group(1024 * MIB, (1024 - left) * MIB, "/sys/fs/cgroup/job/memory.max")
    found = Memory().judge(Allowance(memory=room), MACHINE)
    assert found.mark == mark
    if mark != "ok":
        assert f"{left} MiB of memory left in the control group (1 GiB)" in only(found)[1]


def test_memory_of_the_machine_with_its_swap() -> None:
    busy = MachineState(memory_available=60 * MIB)
    assert only(Memory().judge(Allowance(), busy))[0] == "error"
    assert Memory().judge(Allowance(swap_free=GIB), busy).mark == "ok"
    assert Memory().judge(Allowance(), MachineState()).mark == "skipped"


# A group under another whose limit is tighter, with pages of files that can be dropped.
TREES = {
    1: {
        "outer": {
            "memory.limit_in_bytes": "1000", "memory.usage_in_bytes": "900", "memory.memsw.limit_in_bytes": "1000",
            "memory.stat": "total_active_file 200\ntotal_inactive_file 100\n", "pids.max": "100", "pids.current": "95",
        },
        "inner": {
            "memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "10", "pids.max": "20",
            "pids.current": "4",
        },
    },
    2: {
        "outer": {
            "memory.max": "1000", "memory.current": "900", "memory.swap.max": "0",
            "memory.stat": "active_file 200\ninactive_file 100\n", "pids.max": "100", "pids.current": "95",
        },
        "inner": {"memory.max": "max", "memory.current": "10", "pids.max": "20", "pids.current": "4"},
    },
}  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_where_least_is_left_up_the_tree(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_swap_free", lambda: 5000)
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    for folder in (outer, inner):
        folder.mkdir()
        for name, text in {"cgroup.procs": "", **TREES[version][folder.name]}.items():
            (folder / name).write_text(text + "\n")
    found = Cgroup(version, inner, inner)
    memory, tasks = found.memory_room(), found.task_room()
    assert memory is not None and (memory.limit, memory.used, memory.left) == (1000, 600, 400)
    assert tasks is not None and (tasks.limit, tasks.left, tasks.where) == (100, 5, str(outer / "pids.max"))


def test_a_group_may_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_swap_free", lambda: 5000)
    for name, text in {"cgroup.procs": "", "memory.max": "1000", "memory.current": "900"}.items():
        (tmp_path / name).write_text(text)
    assert (room := Cgroup(2, tmp_path, None).memory_room()) is not None and room.left == 5100
    assert Cgroup(2, None, None).memory_room() is None


# --------------------------------------------------------------------------------------- open files


@pytest.mark.parametrize(("soft", "mark"), [(4, "error"), (32, "warning"), (256, "ok"), (1024, "ok"), (None, "ok")])
def test_open_files(soft: int | None, mark: str) -> None:
    found = OpenFiles().judge(Limit(soft=soft, hard=4096))
    assert found.mark == mark
    if mark != "ok":
        assert only(found)[1].startswith(f"RLIMIT_NOFILE (ulimit -n) is {soft}: ")
        assert found.findings[0].fixes[0].command == "ulimit -S -n 4096"


# ----------------------------------------------------------------------------------------- CPU time


@pytest.mark.parametrize(
    ("soft", "mark"), [(1, "error"), (2, "warning"), (59, "warning"), (60, "ok"), (3600, "ok"), (None, "ok")]
)
def test_cpu_time(soft: int | None, mark: str) -> None:
    found = CpuTime().judge(Limit(soft=soft, hard=None))
    assert found.mark == mark
    if mark != "ok":
        assert only(found)[1].startswith(f"RLIMIT_CPU (ulimit -t) is {soft} s: ")
        assert found.findings[0].fixes[0].command == "ulimit -S -t unlimited"


def test_the_signal_that_ends_it() -> None:
    assert "SIGXCPU" in only(CpuTime().judge(Limit(soft=20, hard=30)))[1]
    assert "SIGKILL" in only(CpuTime().judge(Limit(soft=20, hard=20)))[1]
    assert CpuTime().judge(NO_LIMIT).summary == "not limited"


# ------------------------------------------------------------------------------------------ storage

ROOMY = Folder(path="/home/me/job", size=100 * GIB, free=50 * GIB, files_free=1000, file_system="ext4")
TMP = Folder(path="/tmp", size=100 * GIB, free=50 * GIB, files_free=1000, file_system="ext4")
DOCKER_SHM = Folder(path=SHM, size=64 * MIB, free=64 * MIB, files_free=1000, file_system="tmpfs")


def altered(folder: Folder, **changes: object) -> Folder:
    values = {name: getattr(folder, name) for name in Folder.__struct_fields__}
    return Folder(**(values | changes))


def test_a_fresh_container_is_fine() -> None:
    found = Storage().judge(DOCKER_SHM, ROOMY, [TMP])
    assert found.mark == "ok"
    assert found.summary == "free: 50 GiB in the working folder, 50 GiB in /tmp, 64 MiB in /dev/shm"
    assert "two worker processes" in found.details[-1]


def test_small_shared_memory_can_be_enlarged() -> None:
    small = altered(DOCKER_SHM, size=16 * MIB, free=16 * MIB)
    found = Storage().judge(small, ROOMY, [TMP], may_mount=True)
    assert only(found)[0] == "warning"
    assert "/dev/shm has 16 MiB free of 16 MiB" in found.summary
    repair = found.findings[0].repair
    assert repair is not None
    assert repair.undo == (("mount", "-o", f"remount,size={16 * MIB}", SHM),)
    assert Storage().judge(small, ROOMY, [TMP]).findings[0].repair is None


def test_without_shared_memory() -> None:
    missing = Folder(path=SHM, exists=False, writable=False)
    assert "locks and queues of multiprocessing" in only(Storage().judge(missing, ROOMY, [TMP]))[1]


def test_a_full_working_folder() -> None:
    by_size = Storage().judge(DOCKER_SHM, altered(ROOMY, free=0), [TMP])
    assert only(by_size) == (
        "warning",
        "the working folder has 0 bytes left: a small model that is saved there takes 11.4 MiB",
    )
    by_files = Storage().judge(DOCKER_SHM, altered(ROOMY, files_free=0), [TMP])
    assert "no room for more files (0 inodes left)" in only(by_files)[1]
    # What may not be written to is not full, and need not be written to.
    assert Storage().judge(DOCKER_SHM, altered(ROOMY, free=0, read_only=True), [TMP]).mark == "ok"
    # Some file systems do not count files.
    assert Storage().judge(DOCKER_SHM, altered(ROOMY, files_free=None), [TMP]).mark == "ok"


def test_save_folders_must_be_writable() -> None:
    found = Storage().judge(DOCKER_SHM, ROOMY, [TMP], [altered(TMP, path="/models", read_only=True)])
    assert only(found) == ("error", "the save folder /models is on a read-only file system")
    full = Storage().judge(DOCKER_SHM, ROOMY, [TMP], [altered(TMP, path="/models", free=MIB)])
    assert only(full)[0] == "error"


def test_a_save_folder_that_is_not_there(tmp_path: Path) -> None:
    """`.keras` files are not saved to it; the doctor ticked it off because there was room above it."""
    missing = tmp_path / "runs" / "today"
    severity, title = only(Storage().judge(DOCKER_SHM, ROOMY, [TMP], [altered(would_be(missing), free=GIB)]))
    assert (severity, title.partition(":")[0]) == ("warning", f"the save folder {missing} is not there")
    nowhere = Storage().judge(DOCKER_SHM, ROOMY, [TMP], [altered(would_be(missing), writable=False)])
    assert only(nowhere) == ("error", f"the save folder {missing} is not there, and cannot be made")
    missing.mkdir(parents=True)
    assert Storage().judge(DOCKER_SHM, ROOMY, [TMP], [altered(would_be(missing), free=GIB)]).mark == "ok"


@pytest.mark.parametrize(("soft", "mark"), [(50_000, "warning"), (12_000_000, "ok"), (None, "ok")])
def test_the_size_of_files(soft: int | None, mark: str) -> None:
    found = Storage().judge(DOCKER_SHM, ROOMY, [TMP], file_size=Limit(soft=soft, hard=soft))
    assert found.mark == mark
    if mark != "ok":
        assert only(found)[1].startswith("RLIMIT_FSIZE (ulimit -f) is 48.8 KiB: saving a model")
    assert any("RLIMIT_FSIZE" in detail for detail in found.details) == (soft is not None)


def test_commands_name_folders_with_blanks() -> None:
    found = Storage().judge(DOCKER_SHM, ROOMY, [TMP], [altered(TMP, path="/my models", read_only=True)])
    assert found.findings[0].fixes[0].command == "ls -ld '/my models'"


def test_nowhere_to_put_temporary_files() -> None:
    useless = [altered(TMP, free=0), Folder(path="/usr/tmp", exists=False, writable=False)]
    assert Storage().judge(DOCKER_SHM, ROOMY, useless).mark == "ok"  # the working folder is the last resort
    found = Storage().judge(DOCKER_SHM, altered(ROOMY, writable=False), useless)
    assert only(found)[0] == "error"
    assert [evidence.fact for evidence in found.findings[0].evidence] == ["/tmp is full", "/usr/tmp is missing"]


def test_folders_are_looked_at(tmp_path: Path) -> None:
    here = look_at(tmp_path)
    assert here.exists and here.writable and here.free and here.file_system
    assert not look_at(tmp_path / "missing").exists
    assert nearest(tmp_path / "not" / "yet") == tmp_path


# ----------------------------------------------------------------------------------------- evidence


@pytest.mark.parametrize(
    ("pattern", "exists", "core", "summary"),
    [
        ("core", True, 0, "no core files (ulimit -c 0)"),
        ("core.%p", True, None, "core files: core.%p"),
        ("|/usr/share/apport/apport %p", True, 0, "core files go to /usr/share/apport/apport"),
        ("|/bin/gone %p", False, 0, "no core files: /bin/gone is missing"),
        (None, True, 0, "no core files"),
        ("|", True, 0, "core files go to a program"),
    ],
)
def test_what_a_crash_would_leave(pattern: str | None, exists: bool, core: int | None, summary: str) -> None:
    settings = CrashSettings(core_pattern=pattern, core_program_exists=exists, ptrace_scope=2, seccomp=True)
    found = CrashEvidence().judge(settings, Limit(soft=core, hard=None))
    assert (found.mark, found.findings) == ("ok", ())
    assert found.summary.startswith(summary + ";")
    assert any("seccomp" in line for line in found.details)
