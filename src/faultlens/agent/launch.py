"""Starts the program as if faultlens were not there, but for the agent in its environment."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from faultlens.agent import LIBRARY, layout
from faultlens.errors import FaultlensError
from faultlens.system import elf, own_process

PT_INTERP = 3
CANNOT_START = 126


def agent_environment(environment: Mapping[str, str], area_path: str, follow_children: bool) -> dict[str, str]:
    """The program's environment with the agent added behind libraries that are preloaded already."""
    extended = dict(environment)
    before = environment.get("LD_PRELOAD", "")
    # Last, because some libraries (AddressSanitizer) insist on being first.
    extended["LD_PRELOAD"] = f"{before}:{LIBRARY}" if before else str(LIBRARY)
    extended["FAULTLENS_AGENT"] = area_path
    if not follow_children:
        extended["FAULTLENS_ONLY_THIS"] = "1"
    return extended


class AgentProblem(NamedTuple):
    reason: str
    instead: Literal["tracer", "status"] = "tracer"


def agent_problem(program: str) -> AgentProblem | None:
    """Why the agent cannot be used with this program, if so."""
    if not LIBRARY.exists():
        return AgentProblem("the capture agent was not built (no C compiler at install time)")
    if set(str(LIBRARY)) & set(": $"):
        return AgentProblem("faultlens is installed under a path with a blank, a colon or a dollar sign")
    path = shutil.which(program) or program
    if _is_static(path):
        return AgentProblem(f"{program} is statically linked")
    verdict = ctypes.CDLL(str(LIBRARY)).faultlens_loadable(os.fsencode(path))
    if verdict == layout.FOREIGN:
        return AgentProblem(f"{program} is built for another C library or processor")
    if verdict == layout.SANITIZED:  # which speaks for itself, and does not work under ptrace
        return AgentProblem(f"{program} is built with a sanitizer that must be the first to be loaded", "status")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < ctypes.sizeof(layout.Area):
        return AgentProblem(
            "the memory it shares with faultlens counts as a file, and is too large for one (ulimit -f)"
        )
    return None


def _is_static(path: str) -> bool:
    """An ELF program without a dynamic loader cannot be preloaded."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        read: elf.Read = lambda offset, size: os.pread(file, size, offset)
        headers = elf.program_headers(read, elf.read_header(read))
    except elf.ElfError:
        return False  # a script: its interpreter decides
    finally:
        os.close(file)
    return all(header.type != PT_INTERP for header in headers)


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    signal_mask: Iterable[signal.Signals | int],
    attach: Callable[[int], None] | None = None,
) -> int:
    """Fork and execute; the child gets back the signal state that faultlens itself was started with.

    `attach` is called with the child's pid before the program begins."""
    failure_read, failure_write = os.pipe()
    go_read, go_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    # If it is ignored, nobody tells us of the end of the program.
    on_child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid:
        os.close(failure_write)
        os.close(go_read)
        if attach:
            attach(pid)
        os.close(go_write)
        problem = os.read(failure_read, 4096).decode(errors="replace")
        os.close(failure_read)
        if problem:
            os.waitpid(pid, 0)
            raise FaultlensError(f"Cannot run {command[0]}: {problem}.", "Check that it is an executable program.")
        return pid
    try:
        os.close(go_write)
        os.read(go_read, 1)
        own_process.die_with_parent()  # killing faultlens with SIGKILL must not leave the program running alone
        # Python ignores these two at its own start.
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # Python's: one may be waiting already
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, on_child)
        signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        os.write(failure_write, (error.strerror or str(error)).encode())
    except BaseException as error:  # the child must never return into the supervisor's code
        with contextlib.suppress(OSError):
            os.write(failure_write, repr(error).encode())
    os._exit(CANNOT_START)
