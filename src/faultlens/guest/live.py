"""For programs that are not run by faultlens: what is remembered goes into files, until the program ends well.

`faultlens explain CORE` finds them by the process id."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import mmap
import os
import shutil
import time
from pathlib import Path
from typing import Any

from . import PACKAGES, layout, start
from .hooks import Hooks

FOLDER = "live"  # in faultlens' home
NOTES = "notes"
PROGRESS = "progress"
MAX_LEFT_BEHIND = 20  # folders of programs that did not end well
SILENT_S = 7 * 24 * 3600.0  # a program elsewhere that wrote nothing for so long has ended

AGENT = Path(__file__).parents[1] / "agent" / "libfaultlens_agent.so"

_hooks: Hooks | None = None


def install(home: Path) -> None:
    """Does nothing if it was called before, or if the agent is here already. Failing leaves the program as it was."""
    global _hooks
    if _hooks is not None or is_supervised() or not AGENT.exists():
        return
    try:
        agent = ctypes.PyDLL(str(AGENT))
        agent.faultlens_tools.restype = ctypes.py_object
        tools = agent.faultlens_tools()
        folder = _make_folder(home / FOLDER)
        _hooks = start(**tools, notes=str(folder / NOTES), page=_page(folder / PROGRESS))
    except (OSError, AttributeError, ValueError):
        return
    _hooks.watch(PACKAGES)


def is_supervised() -> bool:
    """By `faultlens run`, or by the helper process of faultlens.install()."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        return "/memfd:faultlens" in maps.read()
    return False


def _make_folder(live: Path) -> Path:
    live.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_left_behind(live)
    folder = live / f"{os.getpid()}-{start_time('self')}-{here()}"
    folder.mkdir(mode=0o700)
    (folder / NOTES).touch(mode=0o600)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _page(path: Path) -> Any:
    """Memory behind a file. Its place on the disk is taken at once: later the disk may be full."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, layout.PAGE_BYTES)
        return memoryview(mmap.mmap(file, layout.PAGE_BYTES))
    finally:
        os.close(file)


def _remove(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # not a forked child
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_behind(live: Path) -> None:
    left = sorted((folder for folder in live.iterdir() if not _is_alive(folder)), key=_modified)
    for folder in left[:-MAX_LEFT_BEHIND]:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(folder: Path) -> bool:
    """Of programs in other containers or on other machines only their silence tells."""
    pid, started, where = [*folder.name.split("-"), "", ""][:3]
    if where == here():
        return pid.isdigit() and start_time(pid) == started
    return time.time() - max(map(_modified, (folder, folder / NOTES, folder / PROGRESS))) < SILENT_S


def here() -> str:
    """Where a process id means this process: the machine since it was started, and the container."""
    try:
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")[:8]
        return f"{machine}{os.stat('/proc/self/ns/pid').st_ino:x}"
    except OSError:
        return "unknown"


def start_time(pid: str) -> str:
    """Of a process, in clock ticks since the machine started; empty if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()  # the name of a program need not be UTF-8
    except OSError:
        return ""
    return text.rpartition(b")")[2].split()[19].decode()


def _modified(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
