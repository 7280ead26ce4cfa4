"""Programs with signal handlers of their own: the true fault is found, and nobody is disturbed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS

Call = Callable[..., str]
Compile = Callable[[str], Path]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """compiled("name"): a C program of programs/undisturbed."""

    def build(name: str) -> Path:
        program = tmp_path / name
        source = PROGRAMS / "undisturbed" / f"{name}.c"
        subprocess.run(["gcc", "-O1", "-g", "-w", "-pthread", "-o", program, source], check=True, timeout=60)
        return program

    return build


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_faulthandler_enabled_by_the_program(run, call: Call, capture: str) -> None:
    done = run(call("read_null", before="import faulthandler; faulthandler.enable()"), options=["--capture", capture])
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr
    fault = done.died.fault
    assert (fault.code, fault.address, fault.seen) == ("SEGV_MAPERR", 0, "chained")
    assert done.died.crashed_thread.frames[0].function == "read_null"


def test_faulthandler_enabled_before_the_program(run, call: Call) -> None:
    done = run(call("read_null"), env={"PYTHONFAULTHANDLER": "1"})
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert done.died.fault.address == 0
    assert done.died.crashed_thread.frames[0].function == "read_null"


def test_faulthandler_prints_what_it_prints_without_us(run, call: Call) -> None:
    code = call("free_twice", before="import faulthandler; faulthandler.enable()")
    done = run(code, options=["--quiet"])
    assert "Fatal Python error: Aborted" in done.stderr
    assert 'File "<string>", line 4 in <module>' in done.stderr
    assert done.stderr.count("Fatal Python error") == 1
    assert done.died.fault.seen == "chained"


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_a_handler_outlives_programs_that_are_started(run, call: Call, capture: str) -> None:
    """subprocess takes all handlers back in a child that shares its parent's memory."""
    before = "import faulthandler, subprocess; faulthandler.enable(); subprocess.run(['true'])"
    done = run(call("read_null", before=before), options=["--capture", capture])
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert done.died.fault.address == 0


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_a_handler_that_recovers_is_not_disturbed(run, call: Call, capture: str) -> None:
    done = run(call("recover_from_segv(0)", after="print(lib.recover_from_segv(1000))"), options=["--capture", capture])
    assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")
    assert done.died.outcome.kind == "ok"
    assert done.saved == []


def test_a_handler_that_mends_the_memory_is_not_disturbed(run, call: Call) -> None:
    done = run(call("mend_read_only_page()", after="print(lib.mend_read_only_page())"))
    assert done.returncode == 0
    assert int(done.stdout) > 42


def test_a_crash_after_a_recovery_is_the_new_crash(run, call: Call) -> None:
    done = run(call("write_to(ctypes.c_long(64))", before="lib.recover_from_segv(3)"))
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.fault.address, done.died.fault.seen) == (64, "direct")


def test_a_handler_that_ends_the_program(run, call: Call) -> None:
    done = run(call("crash_with_handler_that_exits"))
    assert done.returncode == 3
    assert "my own handler" in done.stderr
    assert done.died.outcome.kind == "exit"
    assert (done.died.fault.signal, done.died.fault.address) == ("SIGSEGV", 0)


def test_the_program_sees_the_actions_it_set(run) -> None:
    program = (
        "import signal\n"
        "assert signal.getsignal(signal.SIGSEGV) == signal.SIG_DFL\n"
        "def f(*_): print('handled')\n"
        "signal.signal(signal.SIGABRT, f)\n"
        "assert signal.getsignal(signal.SIGABRT) is f\n"
        "signal.raise_signal(signal.SIGABRT)\n"
        "signal.signal(signal.SIGABRT, signal.SIG_IGN)\n"
        "signal.raise_signal(signal.SIGABRT)\n"
        "print('alive')\n"
    )
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "handled\nalive\n", "")


def test_a_signal_that_is_let_in_for_a_moment_only(run, call: Call) -> None:
    """Emulators die so: everything blocked, the signal sent, and sigsuspend() to let it in."""
    done = run(call("die_in_sigsuspend"))
    assert done.returncode == -signal.SIGILL
    assert done.died.fault.code == "SI_USER"


def test_a_fault_that_heals_while_we_look_is_fatal_all_the_same(run) -> None:
    """Another process makes the truncated file whole again; without faultlens the program would be dead."""
    healer = "import time, os; time.sleep(0.25); os.truncate('data.bin', 1 << 16)"
    program = (
        "import mmap, subprocess, sys\n"
        "f = open('data.bin', 'w+b'); f.truncate(1 << 16)\n"
        "m = mmap.mmap(f.fileno(), 1 << 16)\n"
        "f.truncate(4096)\n"
        "import threading\n"
        f"threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(40)]\n"
        "[t.start() for t in threads]\n"
        f"subprocess.Popen([sys.executable, '-c', {healer!r}])\n"
        "import time; time.sleep(0.15)\n"
        "m[30000]\n"
        "print('survived')\n"
    )
    done = run(program)
    assert done.returncode == -signal.SIGBUS
    assert "survived" not in done.stdout


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_a_handler_that_raises_its_own_signal_again_does_not_hide_the_fault(
    run, compiled: Compile, capture: str
) -> None:
    """The signal is blocked while the handler runs, so it arrives when the handler has returned."""
    done = run([compiled("raise_again"), "segv"], options=["--capture", capture])
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "goodbye\n")
    assert (done.died.fault.code, done.died.fault.address, done.died.fault.seen) == ("SEGV_MAPERR", 8, "chained")


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_a_handler_of_python_that_never_gets_to_run_is_no_recovery(run, capture: str) -> None:
    """The interpreter's handler leaves a note for later and returns to abort(), for which there is no later."""
    code = "import os, signal; signal.signal(signal.SIGABRT, lambda *_: os._exit(0)); os.abort()"
    done = run(code, options=["--capture", capture])
    assert done.returncode == -signal.SIGABRT
    assert done.died.fault.signal == "SIGABRT"
    assert any(frame.function == "abort" for frame in done.died.crashed_thread.frames)
    assert "os.abort()" in done.stderr or "signal-raised-by-program" in done.stderr


def test_a_handler_of_python_that_returns_to_the_fault_for_ever(run) -> None:
    code = "import ctypes, signal; signal.signal(signal.SIGSEGV, print)\nctypes.string_at(0)"
    done = run(code, options=["--timeout", "2"])
    assert done.died.outcome.kind == "timeout"
    assert (done.died.fault.seen, done.died.fault.address) == ("endless", 0)
    assert "time-limit" not in done.stderr


def test_no_other_thread_ends_what_abort_has_ended(run, compiled: Compile) -> None:
    done = run([compiled("abort_handled")])
    assert done.returncode == -signal.SIGABRT
    assert any(frame.function == "call_deeper" for frame in done.died.crashed_thread.frames)


def test_a_recovery_from_abort_is_not_disturbed(run, compiled: Compile) -> None:
    done = run([compiled("abort_handled"), "recovers"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "901\n", "")
    assert done.saved == []


def test_a_program_that_recovered_and_then_failed_is_not_accused(run, compiled: Compile) -> None:
    done = run([compiled("probe_address")])
    assert (done.returncode, done.stdout, done.stderr) == (1, "readable: 0 1\n", "")
    assert done.died.fault is None
    assert done.saved == []


def test_threads_are_seen_where_they_were_when_another_one_crashed(run, call: Call) -> None:
    """They stand still in a handler of ours, which is not theirs."""
    before = (
        "import threading, time\n"
        "def wait_here(): threading.Event().wait()\n"
        "threading.Thread(target=wait_here, daemon=True).start()\n"
        "time.sleep(0.1)\n"
    )
    done = run(call("read_null", before=before))
    waiting = next(
        thread for thread in done.died.threads if any(frame.function == "wait_here" for frame in thread.frames)
    )
    assert not waiting.crashed
    native = [frame for frame in waiting.frames if frame.kind == "native"]
    assert not any("faultlens" in (frame.library or "") for frame in native)
    assert not any(frame.function == "__restore_rt" for frame in native)


def test_the_stack_of_another_thread_is_walked_from_where_it_was(run, call: Call) -> None:
    before = (
        "import threading, time\nthreading.Thread(target=lambda: time.sleep(50), daemon=True).start()\ntime.sleep(0.1)"
    )
    done = run(call("read_null", before=before))
    sleeping = next(thread for thread in done.died.threads if not thread.crashed)
    library = next(frame for frame in sleeping.frames if frame.kind == "native").library or ""
    assert "libc" in library, sleeping.frames
    stack = next(each for each in done.died.mappings if each.start <= sleeping.stack_pointer < each.end)
    assert stack.end - stack.start > 1 << 20  # its own, not the one that signals are handled on
