"""The sandbox under attack: as root and as an ordinary user, with all that the kernel offers and with less."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from faultlens.sandbox.guest import confinement, guard

ATTACKS = Path(__file__).with_name("sandbox_attacks.py")
LESSER = Path(__file__).with_name("on_a_lesser_kernel.py")
NOBODY = 65534
# What is said not to be held, and the attacks that may succeed then.
EXCUSED = {
    "write to files elsewhere": {"write", "truncate", "remove", "rename", "sysctl", "disk", "memory"},
    "cut files elsewhere short": {"truncate"},
    "reach other programs through /dev/shm": {"shared memory"},
    "send signals to other processes": {"kill"},
}


class Victims(NamedTuple):
    """What must come out of it as it was."""

    names: dict[str, Any]
    process: subprocess.Popen[bytes]
    listeners: tuple[socket.socket, ...]


def pythons_of(user: int) -> str | None:
    """One that this user can run."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            code = "import sys; open(sys.argv[1]); sys.exit(sys.version_info < (3, 9))"
            subprocess.run([*as_user(user), python, "-c", code, guard.__file__], check=True, capture_output=True)
            return python
    return None


def as_user(user: int) -> list[str]:
    return [] if user == os.geteuid() else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


@pytest.fixture(params=["own", "nobody"])
def user(request: pytest.FixtureRequest) -> int:
    if request.param == "own":
        return os.geteuid()
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root, and setpriv, to become another user")
    return NOBODY


@pytest.fixture
def place(user: int) -> Iterator[Path]:
    """A folder of that user's; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="faultlens-test-"))
    for name in ("", "sandbox", "outside"):
        (folder / name).mkdir(exist_ok=True)
        os.chown(folder / name, user, user if user == NOBODY else -1)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def victims(user: int, place: Path) -> Iterator[Victims]:
    outside = place / "outside"
    files = outside / "precious", Path("/dev/shm", f"faultlens-test-{secrets.token_hex(4)}")
    for file in files:
        file.write_text("mine")
        file.chmod(0o600)
        os.chown(file, user, -1)
        os.utime(file, (1e9, 1e9))
    abstract = f"faultlens-test-{secrets.token_hex(4)}"
    kinds = {"socket": socket.AF_UNIX, "dgram": socket.AF_UNIX, "abstract": socket.AF_UNIX, "udp": 2, "tcp": 2}
    listeners, names = [], {"file": str(files[0]), "shm": str(files[1]), "disk": some_disk()}
    for name, family in kinds.items():
        listener = socket.socket(family, socket.SOCK_DGRAM if name in ("dgram", "udp") else socket.SOCK_STREAM)
        address = {"abstract": "\0" + abstract}.get(name, str(outside / name)) if family == 1 else ("127.0.0.1", 0)
        listener.bind(address)
        listener.setblocking(False)
        if listener.type == socket.SOCK_STREAM:
            listener.listen()
        names[name] = address if family == 1 else listener.getsockname()[1]
        listeners.append(listener)
    names["abstract"] = abstract
    for name in ("socket", "dgram"):
        os.chown(names[name], user, -1)
    process = subprocess.Popen([*as_user(user), "sleep", "60"])
    yield Victims({**names, "pid": process.pid}, process, tuple(listeners))
    process.kill()
    process.wait()
    for listener in listeners:
        listener.close()
    files[1].unlink()


def some_disk() -> str | None:
    return next((f"/dev/{name}" for name in os.listdir("/dev") if stat.S_ISBLK(os.stat(f"/dev/{name}").st_mode)), None)


def state_of(victims: Victims) -> dict[str, Any]:
    pid = victims.process.pid
    found: dict[str, Any] = {"dead": victims.process.poll()}
    for name in ("file", "shm"):
        path = Path(victims.names[name])
        seen = path.stat()
        found[name] = path.read_text(), seen.st_mode, seen.st_uid, seen.st_gid, seen.st_mtime, os.listxattr(path)
    found["process"] = Path(f"/proc/{pid}/limits").read_text(), os.getpriority(os.PRIO_PROCESS, pid)
    found["affinity"] = os.sched_getaffinity(pid)
    for listener in victims.listeners:
        with contextlib.suppress(BlockingIOError):
            found[f"heard by {listener.getsockname()}"] = (
                listener.accept() if listener.type == socket.SOCK_STREAM else listener.recv(9)
            )
    return found


@pytest.mark.parametrize("without", [[], ["namespaces"], ["landlock"], ["namespaces", "landlock"]], ids="-".join)
def test_attacks_fail_or_are_said_not_to(user: int, place: Path, victims: Victims, without: list[str]) -> None:
    python = pythons_of(user)
    if python is None:
        pytest.skip("there is no Python that another user can run")
    before = state_of(victims)
    mark = f"9{secrets.randbelow(10**8):08}"
    request = {
        "sandbox": guard.FOLDER,
        "without": without,
        "folder": str(place / "sandbox"),
        "victims": victims.names,
        "mark": mark,
    }
    script = shutil.copy(ATTACKS, place)
    done = subprocess.run([*as_user(user), python, "-B", script, json.dumps(request)], capture_output=True, timeout=60)
    assert done.returncode == 7, done.stderr.decode()  # that of the guarded process
    told = json.loads(done.stdout)
    assert not told["ordinary"]
    excused = set().union(*(EXCUSED[words] for words in told["not held"]))
    assert {name for name, refusal in told["attacks"].items() if not refusal} <= excused
    assert not told["not held"] or without or confinement.available().not_held()
    if not excused:
        assert state_of(victims) == before
    assert mark.encode() not in b"".join(commands()), "a daemon lives on"


def commands() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


LINE = "This kernel confines less than it should: what was run here could write to files elsewhere; "


@pytest.mark.parametrize("without", [[], ["namespaces", "landlock"]], ids=["all", "less"])
def test_what_is_not_held_is_said(tmp_path: Path, without: list[str]) -> None:
    """On a kernel that has it all and on one that has not, in what is shown and in the JSON."""
    if not without and confinement.available().not_held():
        pytest.skip("this kernel confines less itself")
    (tmp_path / "data").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    (tmp_path / "mine.py").write_text("def decode(data): pass\n")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04N.")
    commands = {
        "verification": ["verify", "--load", "model.pkl"],
        "scan": ["scan", "--using", "mine:decode", "data.csv"],
    }
    for name, words in commands.items():
        command = [sys.executable, str(LESSER), json.dumps(without), *words, "--json", "found.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        found = json.loads((tmp_path / "found.json").read_text())
        assert bool(found["not_held"]) == bool(without), (name, done)
        assert (LINE in " ".join(done.stdout.split())) == bool(without), (name, done)
