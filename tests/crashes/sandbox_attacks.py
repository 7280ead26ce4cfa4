"""Tries to do harm from inside the sandbox: `python sandbox_attacks.py REQUEST`, with nothing but the standard library.

The request (JSON): the folder of the sandbox package, system calls to forbid first (as a kernel without them would),
the folder that may be written to, and the victims. Prints what was available, and for each attack why it failed;
empty: it did not."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

FORBIDDEN = {"namespaces": ((272, 1),), "landlock": ((444, 38),)}  # unshare: EPERM, landlock_create_ruleset: ENOSYS
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def attacks(victims: dict) -> dict:
    file, pid = victims["file"], victims["pid"]
    return {
        "write": lambda: Path(file).write_text("theirs"),
        "truncate": lambda: os.truncate(file, 0),
        "remove": lambda: os.remove(file),
        "rename": lambda: os.rename(file, file + ".theirs"),
        "chmod": lambda: os.chmod(file, 0o777),
        "fchmod": lambda: os.fchmod(os.open(file, os.O_RDONLY), 0o777),
        "chown": lambda: os.chown(file, os.getuid(), os.getgid()),
        "setxattr": lambda: os.setxattr(file, "user.theirs", b"1"),
        "utime": lambda: os.utime(file, (1, 1)),
        "mknod": lambda: os.mknod("disk", 0o60660, os.makedev(254, 0)),
        "unix socket": lambda: socket.socket(socket.AF_UNIX).connect(victims["socket"]),
        "abstract socket": lambda: socket.socket(socket.AF_UNIX).connect("\0" + victims["abstract"]),
        "datagram to a socket": lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"x", victims["dgram"]),
        "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", victims["udp"])),
        "tcp": lambda: socket.create_connection(("127.0.0.1", victims["tcp"]), 2),
        "raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "prlimit": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (7, 7)),
        "setpriority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "affinity": lambda: os.sched_setaffinity(pid, [max(os.sched_getaffinity(0))]),
        "kill": lambda: os.kill(pid, signal.SIGKILL),
        "ptrace": lambda: call(101, 16, pid, 0, 0),  # PTRACE_ATTACH
        "memory": lambda: open(f"/proc/{pid}/mem", "r+b"),
        "io_uring": lambda: call(425, 4, ctypes.create_string_buffer(120)),
        "user namespace": lambda: call(272, 0x10000000),
        "keyring": lambda: call(248, b"user", b"theirs", b"1", 1, -4),
        "shared memory": lambda: Path(victims["shm"]).write_text("theirs"),
        "sysctl": lambda: os.open("/proc/sys/kernel/domainname", os.O_WRONLY),
        "disk": lambda: os.open(victims["disk"], os.O_WRONLY) if victims.get("disk") else call(-1),
    }


def call(number: int, *arguments: object) -> None:
    values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if libc.syscall(ctypes.c_long(number), *values) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def ordinary() -> None:
    """What a program must still be able to do."""
    Path("own").write_text("1")
    os.rename("own", "mine")
    os.truncate("mine", 0)
    left, right = socket.socketpair()
    left.send(b"x")
    assert right.recv(1) == b"x"
    with open("/dev/null", "wb") as nowhere:
        nowhere.write(b"x")
    Path("/dev/shm/faultlens-test-own").write_text("1")
    os.remove("/dev/shm/faultlens-test-own")
    assert os.path.exists(f"/proc/{os.getpid()}/status")
    assert os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "kill -TERM $$"], os.environ), 0)[1] == signal.SIGTERM


def daemon(mark: str) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            os.execv(shutil.which("sleep"), ["sleep", mark])
        os._exit(0)
    os.wait()


def main() -> None:
    request = json.loads(sys.argv[1])
    folder = request["sandbox"]
    spec = importlib.util.spec_from_file_location(
        "faultlens_sandbox", folder + "/__init__.py", submodule_search_locations=[folder]
    )
    sys.modules["faultlens_sandbox"] = importlib.util.module_from_spec(spec)
    seccomp, guard, confinement = (
        importlib.import_module(f"faultlens_sandbox.{name}") for name in ("seccomp", "guard", "confinement")
    )
    if request["without"]:
        steps = [
            (number, [(seccomp.RETURN, 0, 0, seccomp.SECCOMP_RET_ERRNO | code)])
            for name in request["without"]
            for number, code in FORBIDDEN[name]
        ]
        seccomp.install(seccomp.program_of(steps))
    means = confinement.available()
    os.chdir(request["folder"])
    guard.enter(means, [request["folder"]])
    confinement.confine(means, [request["folder"]])
    results = {}
    for name, attack in attacks(request["victims"]).items():
        try:
            attack()
            results[name] = ""
        except OSError as error:
            results[name] = str(error)
    problem = ""
    try:
        ordinary()
        if means.mounts:  # where it cannot be told from others, it is refused
            os.chmod("mine", 0o600)
            os.utime("mine", (1, 1))
    except (OSError, AssertionError) as error:
        problem = repr(error)
    daemon(request["mark"])
    print(json.dumps({"means": means._asdict(), "not held": means.not_held(), "attacks": results, "ordinary": problem}))
    sys.stdout.flush()
    time.sleep(0.05)
    os._exit(7)


main()
