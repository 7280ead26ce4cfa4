"""The helper process that faultlens.install() starts: from a crash of the program to its report."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TextIO

from faultlens.records.crash import Crash
from faultlens.records.report_file import Report
from faultlens.supervise.attendant import Attendant
from faultlens.supervise.installation import READY
from faultlens.system import own_process

NICENESS = 5
SYS_PIDFD_GETFD = 438
STDERR = 2
PRINT_S = 5  # nobody may read it, and the program waits


def main() -> None:
    """The first argument is the process id of the program, which waits for an answer."""
    try:
        _stay_out_of_the_way()
        attendant = Attendant(int(sys.argv[1]), _examine)
    except Exception as error:
        os.write(READY, f"the helper process failed with {type(error).__name__}: {error}".encode())
        os._exit(0)
    os.write(READY, attendant.area.path.encode())
    os.close(READY)
    try:
        attendant.attend()
    except Exception as error:  # whoever waits for us sees that we are gone
        _complain(error)
    os._exit(0)


def _stay_out_of_the_way() -> None:
    """It ends when the program does: what is sent to all processes of a service or job is not meant for it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    os.chdir("/")
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE):
        most = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most, most))
    own_process.no_core_file()


def _examine(crash: Crash) -> Callable[[], None]:
    """A failure costs the report, and nothing else: the process is let go."""
    try:
        from faultlens.cli.telling import examined, worth_telling

        report = examined(crash)
        return partial(_tell, report) if worth_telling(report) else _nothing
    except Exception as error:
        return partial(_complain, error)


def _tell(report: Report) -> None:
    from faultlens.cli import output

    try:
        stored = output.save(report)
        with _stderr_of(report.crash.pid) as stream, _for_at_most(PRINT_S):
            output.render(report, stream, stored=stored)
            stream.flush()
    except Exception as error:
        _complain(error)


def _complain(error: Exception) -> None:
    with contextlib.suppress(OSError):
        print(f"faultlens: there is no report: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _nothing() -> None:
    pass


@contextlib.contextmanager
def _stderr_of(pid: int | None) -> Iterator[TextIO]:
    """Of a process that is held; of one that has ended, what it was when the program called install()."""
    try:
        pidfd = os.pidfd_open(pid or 0)
    except OSError:
        yield sys.stderr
        return
    copy = ctypes.CDLL(None).syscall(SYS_PIDFD_GETFD, pidfd, STDERR, 0)
    os.close(pidfd)
    with open(copy if copy >= 0 else STDERR, "w", encoding="utf-8", errors="replace", closefd=copy >= 0) as stream:
        yield stream


@contextlib.contextmanager
def _for_at_most(seconds: int) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError("nobody reads what the program prints")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
