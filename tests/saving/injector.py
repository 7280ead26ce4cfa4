"""How is a process made to fail at one call, and what did it do before? The Python side of injector.c."""

from __future__ import annotations

import ctypes
import enum
import mmap
import os
import platform
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("injector.c")
LONGEST = 4096
RECORD = struct.Struct("<IIIIIIqQqqQ")  # struct record


class Kind(enum.IntFlag):
    OPEN = 1 << 0
    CREATE = 1 << 1
    WRITE = 1 << 2
    TRUNCATE = 1 << 3
    SYNC = 1 << 4
    RENAME = 1 << 5
    EXCHANGE = 1 << 6
    LINK = 1 << 7
    SYMLINK = 1 << 8
    UNLINK = 1 << 9
    RMDIR = 1 << 10
    MKDIR = 1 << 11
    COPY = 1 << 12
    ALLOCATE = 1 << 13
    METADATA = 1 << 14
    LOCK = 1 << 15


NONE = Kind(0)
ALL = Kind((1 << 15) - 1)  # a lock changes no file
SPACE = Kind.CREATE | Kind.WRITE | Kind.MKDIR | Kind.COPY | Kind.ALLOCATE | Kind.LINK | Kind.SYMLINK  # a full disk


class Action(enum.IntEnum):
    NOTHING = 0
    KILL_BEFORE = 1
    KILL_AFTER = 2
    KILL_HALFWAY = 3
    FAIL = 4
    FAIL_HALFWAY = 5  # a short write
    STOP_BEFORE = 6


class Flag(enum.IntFlag):
    CREATED = 1
    TRUNCATED = 2
    WHOLE_SYSTEM = 4
    UNNAMED = 8


@dataclass(frozen=True)
class Plan:
    """What happens to which call."""

    action: Action = Action.NOTHING
    at: int = 0  # from 1; 0: never
    error: int = 0
    kinds: Kind = ALL  # that are counted
    later: Kind = NONE  # fail after that call
    never: Kind = NONE  # always fail, and are not counted


@dataclass(frozen=True)
class Operation:
    """One call that was made below the watched folder."""

    kind: Kind
    flags: Flag
    path: str
    other: str  # the new name
    result: int
    inode: int
    offset: int
    length: int
    data: bytes

    def __str__(self) -> str:
        name = self.kind.name or str(int(self.kind))
        words = [name.lower(), self.path, self.other and f"→ {self.other}"]
        if self.data:
            words.append(f"{len(self.data)} bytes at {self.offset}")
        if self.result < 0:
            words.append(f"({os.strerror(-self.result)})")
        return " ".join(word for word in words if word)


class _Page(ctypes.Structure):
    _fields_ = [
        ("action", ctypes.c_uint32),
        ("kinds", ctypes.c_uint32),
        ("later", ctypes.c_uint32),
        ("never", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("error", ctypes.c_int32),
        ("at", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("log", ctypes.c_int32),
        ("busy", ctypes.c_uint32),
        ("last", ctypes.c_uint32),
        ("watched_length", ctypes.c_uint32),
        ("watched", ctypes.c_char * LONGEST),
    ]


def missing() -> str:
    """Why there can be no injector here; empty if there can."""
    if platform.machine() != "x86_64":
        return "needs x86-64"
    return "" if shutil.which("gcc") else "needs gcc"


def build(folder: Path) -> Path:
    library = folder / "injector.so"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE]
    subprocess.run(command, check=True, timeout=60)
    return library


class Injector:
    """The page is shared with forked children: the parent plans, a child arms itself and obeys."""

    def __init__(self, library: Path) -> None:
        self._functions = ctypes.CDLL(str(library))
        self._functions.injector_kill_in.argtypes = [ctypes.c_int64]
        self._memory = mmap.mmap(-1, ctypes.sizeof(_Page))
        self._page = _Page.from_buffer(self._memory)

    @property
    def count(self) -> int:
        return int(self._page.count)

    @property
    def hit(self) -> Kind:
        """The kind of the call at which it happened; none if there were not that many calls."""
        return Kind(self._page.last)

    def plan(self, folder: Path, plan: Plan) -> None:
        """The folder is watched from the next arming, or, in armed children, from now."""
        self.rest()
        page = self._page
        page.action, page.at, page.error = plan.action, plan.at, plan.error
        page.kinds, page.later, page.never = plan.kinds, plan.later, plan.never
        page.count, page.last, page.busy, page.log = 0, 0, 0, -1
        page.watched = os.fsencode(folder.resolve())
        page.watched_length = len(page.watched)

    def rest(self) -> None:
        """Nothing is watched."""
        self._page.watched_length = 0

    # In the child:

    def arm(self, log: Path | None = None) -> None:
        """There is no way back for this process."""
        if log is not None:
            self._page.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if error := self._functions.injector_arm(ctypes.byref(self._page)):
            raise OSError(error, f"seccomp: {os.strerror(error)}")

    def kill_in(self, seconds: float) -> None:
        """SIGKILL by the kernel's clock."""
        if error := self._functions.injector_kill_in(max(int(seconds * 1e9), 1)):
            raise OSError(error, f"timer_create: {os.strerror(error)}")


def read_log(path: Path, size: int | None = None) -> list[Operation]:
    """Of its first bytes, or all."""
    return list(_operations(path.read_bytes()[:size]))


def _operations(data: bytes) -> Iterator[Operation]:
    at = 0
    while at < len(data):
        size, kind, flags, path_length, other_length, _, result, inode, offset, length, data_length = (
            RECORD.unpack_from(data, at)
        )
        start = at + RECORD.size
        middle = start + path_length
        end = middle + other_length
        yield Operation(
            Kind(kind),
            Flag(flags),
            os.fsdecode(data[start:middle]),
            os.fsdecode(data[middle:end]),
            result,
            inode,
            offset,
            length,
            data[end : end + data_length],
        )
        at += size
