"""Facts about a process that still exists, read from /proc."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from faultlens.records.crash import Limit, MemoryUse, Program, Sample
from faultlens.system.cgroup import Cgroup
from faultlens.system.machine import kilobytes
from faultlens.system.procfs import read_fields, read_text

# Rows of /proc/PID/limits -> the names of getrlimit(2).
LIMIT_NAMES = {
    "Max cpu time": "RLIMIT_CPU",
    "Max file size": "RLIMIT_FSIZE",
    "Max data size": "RLIMIT_DATA",
    "Max stack size": "RLIMIT_STACK",
    "Max core file size": "RLIMIT_CORE",
    "Max resident set": "RLIMIT_RSS",
    "Max processes": "RLIMIT_NPROC",
    "Max open files": "RLIMIT_NOFILE",
    "Max locked memory": "RLIMIT_MEMLOCK",
    "Max address space": "RLIMIT_AS",
}
EXIT_CODE = 49  # of the fields of /proc/PID/stat, counted from the one behind the name
_SHELL = re.compile(r"/(?:ba|da|z|k|a|fi)?sh\d?$|/busybox$")


def memory_use(pid: int) -> MemoryUse:
    status = read_fields(f"/proc/{pid}/status", ":")
    threads = status.get("Threads", "")
    return MemoryUse(
        rss_anonymous=kilobytes(status.get("RssAnon")),
        rss_shared=kilobytes(status.get("RssShmem")),
        rss=kilobytes(status.get("VmRSS")),
        rss_peak=kilobytes(status.get("VmHWM")),
        virtual=kilobytes(status.get("VmSize")),
        virtual_peak=kilobytes(status.get("VmPeak")),
        swap=kilobytes(status.get("VmSwap")),
        threads=int(threads) if threads.isdigit() else None,
        open_files=open_files(pid),
    )


def open_files(pid: int, may_count: bool = True) -> int | None:
    """Since Linux 6.2 the folder says it; before, its entries are counted."""
    folder = f"/proc/{pid}/fd"
    try:
        return os.stat(folder).st_size or (len(os.listdir(folder)) if may_count else None)
    except OSError:
        return None


def sample(pid: int, seconds: float, cgroup: Cgroup | None) -> Sample:
    """One point of the timeline: small files, read a few times a second."""
    status = read_fields(f"/proc/{pid}/status", ":")
    threads = status.get("Threads", "")
    return Sample(
        seconds=round(seconds, 3),
        rss_anonymous=kilobytes(status.get("RssAnon")),
        rss=kilobytes(status.get("VmRSS")),
        rss_shared=kilobytes(status.get("RssShmem")),
        cgroup_used=cgroup.memory_used() if cgroup else None,
        shm_used=shared_memory_used(),
        threads=int(threads) if threads.isdigit() else None,
    )


def shared_memory_used() -> int | None:
    """Of /dev/shm, by whomever."""
    try:
        state = os.statvfs("/dev/shm")
    except OSError:
        return None
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def resource_limits(pid: int) -> dict[str, Limit]:
    limits = {}
    for line in (read_text(f"/proc/{pid}/limits") or "").splitlines():
        name = LIMIT_NAMES.get(line[:26].strip())
        values = line[26:].split()
        if name and len(values) >= 2:
            limits[name] = Limit(soft=_limit(values[0]), hard=_limit(values[1]))
    return limits


def program(pid: int, redact: bool) -> Program:
    """As it is; `redact` has it redacted when the report is made, where its secrets must be known to be found."""
    command = tuple(_strings(f"/proc/{pid}/cmdline"))
    environment = _variables(pid)
    return Program(
        command=command,
        directory=_link(f"/proc/{pid}/cwd"),
        executable=_link(f"/proc/{pid}/exe"),
        environment=environment,
        redacted=redact,
    )


def environment_prefix(pid: int) -> str | None:
    """The virtual environment the process runs in, judged by the program it was started as, as Python does it."""
    command = _strings(f"/proc/{pid}/cmdline")
    if not command:
        return None
    try:
        folder = Path(os.readlink(f"/proc/{pid}/cwd"))
        started = command[0] if "/" in command[0] else shutil.which(command[0], path=_variables(pid).get("PATH"))
        root = (folder / started).parent.parent if started else None
        return str(root) if root and (root / "pyvenv.cfg").exists() else None
    except OSError:
        return None


def thread_name(pid: int, tid: int) -> str | None:
    text = read_text(f"/proc/{pid}/task/{tid}/comm")
    return text.strip() if text else None


def parent_pid(pid: int) -> int | None:
    text = read_fields(f"/proc/{pid}/status", ":").get("PPid", "")
    return int(text) if text.isdigit() else None


def descendants(root: int) -> list[int]:
    """Living processes below `root`, nearest first."""
    return [pid for pid in _below(root) if not _is_zombie(pid)]


def ended_below(root: int) -> dict[int, int]:
    """The wait status of processes below `root` that have ended, and that their parents have not waited for."""
    found = {}
    for pid in _below(root):
        fields = _stat(pid)
        if fields[:1] == ["Z"] and len(fields) > EXIT_CODE:
            found[pid] = int(fields[EXIT_CODE])
    return found


def _below(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (parent := parent_pid(int(entry))) is not None:
            children.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        found += level
    return found


def _stat(pid: int) -> list[str]:
    """Its fields in /proc/PID/stat, from the one behind the name."""
    return (read_text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()


def _is_zombie(pid: int) -> bool:
    return _stat(pid)[:1] == ["Z"]


def all_of_session(session: int) -> set[int]:
    found = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(entry)) == session:
                found.add(int(entry))
    return found


def below_shells(pid: int) -> int:
    """The program that a shell waits for. A shell dies of a signal, and leaves its program running."""
    while _SHELL.search(_link(f"/proc/{pid}/exe") or ""):
        children = (read_text(f"/proc/{pid}/task/{pid}/children") or "").split()
        if len(children) != 1:
            break
        pid = int(children[0])
    return pid


def _variables(pid: int) -> dict[str, str]:
    return dict(entry.partition("=")[::2] for entry in _strings(f"/proc/{pid}/environ"))


def _strings(path: str) -> list[str]:
    return [part for part in (read_text(path) or "").split("\0") if part]


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _limit(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def own_root(pid: int) -> str:
    """Where its files are, if it has mounts of its own: those of a container, or of `unshare -m`."""
    try:
        is_ours = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""
    return "" if is_ours else f"/proc/{pid}/root"
