"""Every fatal signal, by every road that leads to it, recorded with the facts that tell them apart."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from faultlens.records.crash import Crash, Frame

Call = Callable[..., str]


def native_functions(crash: Crash) -> list[str]:
    thread = crash.crashed_thread
    assert thread is not None
    return [frame.function for frame in thread.frames if frame.kind == "native"]


def python_lines(crash: Crash) -> list[int | None]:
    thread = crash.launching_thread
    assert thread is not None
    return [frame.line for frame in thread.frames if frame.kind == "python"]


def first_own(frames: tuple[Frame, ...]) -> Frame:
    return next(frame for frame in frames if frame.library and frame.library.endswith("libnative.so"))


def test_null_pointer(run, call: Call) -> None:
    done = run(call("read_null"))
    fault = done.died.fault
    assert done.returncode == -signal.SIGSEGV
    assert (fault.signal, fault.code, fault.address, fault.access) == ("SIGSEGV", "SEGV_MAPERR", 0, "read")
    assert fault.instruction.operands[0].size == 4
    assert native_functions(done.died)[0] == "read_null"
    assert python_lines(done.died)[0] == 4
    assert first_own(done.died.crashed_thread.frames).line is not None
    assert done.died.method == "agent"
    assert not done.died.exiting


def test_wild_pointer(run, call: Call) -> None:
    fault = run(call("read_wild")).died.fault
    assert (fault.code, fault.address) == ("SEGV_MAPERR", 0x12345678000)


def test_write_through_a_pointer_argument(run, call: Call) -> None:
    fault = run(call("write_to(ctypes.c_long(64))")).died.fault
    assert (fault.address, fault.access) == (64, "write")
    assert fault.instruction.operands[0].registers == {"rdi": 64}


def test_general_protection_is_not_a_null_pointer(run, call: Call) -> None:
    fault = run(call("read_non_canonical")).died.fault
    assert (fault.code, fault.address) == ("SI_KERNEL", None)


def test_write_to_read_only_memory(run, call: Call) -> None:
    fault = run(call("write_read_only")).died.fault
    assert (fault.code, fault.access) == ("SEGV_ACCERR", "write")


def test_call_through_null(run, call: Call) -> None:
    crash = run(call("call_null")).died
    assert (crash.fault.address, crash.fault.access) == (0, "execute")
    assert "call_null" in native_functions(crash)
    assert python_lines(crash)[0] == 4


def test_mapped_file_truncated(run, tmp_path) -> None:
    program = (
        "import mmap, os\n"
        "f = open('data.bin', 'w+b'); f.truncate(1 << 16)\n"
        "m = mmap.mmap(f.fileno(), 1 << 16)\n"
        "f.truncate(4096)\n"
        "m[30000]\n"
    )
    done = run(program)
    assert done.returncode == -signal.SIGBUS
    assert done.died.fault.code == "BUS_ADRERR"
    state = next(state for state in done.died.files if state.path == str(tmp_path / "data.bin"))
    assert (state.state, state.size, state.mapped_end) == ("shorter than mapped", 4096, 1 << 16)
    assert python_lines(done.died)[0] == 5


def test_division_by_zero(run, call: Call) -> None:
    done = run(call("divide(7, 0)"))
    assert done.returncode == -signal.SIGFPE
    assert done.died.fault.code == "FPE_INTDIV"
    assert "div" in done.died.fault.instruction.text


def test_trap_instruction(run, call: Call) -> None:
    done = run(call("trap"))
    assert done.returncode == -signal.SIGILL
    assert done.died.fault.instruction.code.startswith("0f0b")


@pytest.mark.parametrize("capture", ["agent", "ptrace"])
def test_breakpoint_instruction(run, call: Call, capture: str) -> None:
    done = run(call("breakpoint"), options=["--capture", capture])
    assert done.returncode == -signal.SIGTRAP
    assert done.died.fault.instruction.text == "int3"
    assert native_functions(done.died)[0] == "breakpoint"
    assert python_lines(done.died)[0] == 4


def test_abort_by_glibc_keeps_its_message(run, call: Call) -> None:
    done = run(call("free_twice"))
    assert done.returncode == -signal.SIGABRT
    assert "free" in (done.died.abort_message or "")
    assert "free_twice" in native_functions(done.died)


def test_abort_by_a_check_keeps_the_output(run, call: Call) -> None:
    done = run(call("abort_with_check"))
    assert done.returncode == -signal.SIGABRT
    assert "Check failed: rank == 2 (3 vs. 2)" in done.died.output.stderr
    assert done.died.fault.code == "SI_TKILL"


@pytest.mark.parametrize(
    ("expression", "kind", "text"),
    [
        ("throw_error(b'no such layer')", "std::runtime_error", "no such layer"),
        ("throw_custom()", "CustomError", "index 9 of 3"),
        ("throw_bad_alloc()", "std::bad_alloc", None),
    ],
)
def test_uncaught_cpp_exception(run, call: Call, expression: str, kind: str, text: str | None) -> None:
    done = run(call(expression))
    assert done.returncode == -signal.SIGABRT
    thrown = done.died.exceptions[0]
    assert (thrown.type, thrown.message) == (kind, text)
    assert thrown.thread == done.died.crashed_thread.id
    assert any("throw_" in frame.function for frame in thrown.frames)


def test_exception_on_another_thread(run, call: Call) -> None:
    done = run(call("throw_in_thread(b'worker failed')"))
    assert done.returncode == -signal.SIGABRT
    assert done.died.exceptions[0].message == "worker failed"
    assert done.died.crashed_thread.id != done.died.pid
    # The crashed thread has no Python: the line of the one that waits for it is what the user wants to see.
    assert python_lines(done.died)[0] == 4


def test_caught_exceptions_are_remembered_latest_first(run, call: Call) -> None:
    before = "for i in range(3): lib.throw_and_catch(b'attempt %d' % i)"
    crash = run(call("read_null", before=before)).died
    assert [thrown.message for thrown in crash.exceptions] == ["attempt 2", "attempt 1", "attempt 0"]


def test_stack_overflow_on_the_main_thread(run, call: Call) -> None:
    done = run(call("recurse(0)"))
    assert done.returncode == -signal.SIGSEGV
    fault = done.died.fault
    assert abs(fault.address - fault.registers["rsp"]) < 16384
    assert native_functions(done.died)[:3] == ["recurse"] * 3


def test_stack_overflow_on_a_worker_thread(run, call: Call) -> None:
    done = run(call("recurse_in_thread"))
    assert done.returncode == -signal.SIGSEGV
    assert done.died.fault.thread != done.died.pid
    assert native_functions(done.died)[0] == "recurse"


def test_two_threads_crash_at_once(run, call: Call) -> None:
    done = run(call("two_threads_crash"))
    assert done.returncode == -signal.SIGSEGV
    assert done.died.fault.address == 0
    # The other thread may have been stopped a moment before it crashed.
    assert all(fault.address == 0 for fault in done.died.also_faulted)
    assert done.died.fault.thread not in {fault.thread for fault in done.died.also_faulted}
    assert sum(thread.crashed for thread in done.died.threads) == 1
