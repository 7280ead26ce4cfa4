"""Which thread crashed, which one launched the work, and whether the process was on its way out."""

from __future__ import annotations

from fake_memory import FakeMemory, mapping
from faultlens.inspection.stacks import arrange, at_fault, is_exiting
from faultlens.records.crash import Address, Frame, Thread


def frame(function: str, kind: str = "native", address: int | None = None) -> Frame:
    library = "/lib/x.so" if kind == "native" else None
    place = Address(address) if address is not None else None
    return Frame(kind=kind, function=function, address=place, library=library)  # type: ignore[arg-type]


def thread(tid: int, *frames: Frame) -> Thread:
    return Thread(id=tid, frames=frames)


MAIN = thread(100, frame("futex_wait"), frame("TFE_Py_FastPathExecute_C(_object*)"), frame("fit", "python"))
IDLE = thread(101, frame("sleep"), frame("background", "python"))
WORKER = thread(102, frame("Eigen::ThreadPoolTempl<>::WorkerLoop"))


def launched(*threads: Thread, crashed: int | None, pid: int = 100) -> int | None:
    return next((each.id for each in arrange(threads, crashed, pid) if each.launched), None)


def test_the_crashed_thread_comes_first_and_is_marked() -> None:
    arranged = arrange([MAIN, IDLE, WORKER], 102, 100)
    assert [each.id for each in arranged] == [102, 100, 101]
    assert [each.crashed for each in arranged] == [True, False, False]


def test_a_crashing_python_thread_launched_its_own_work() -> None:
    assert launched(MAIN, IDLE, WORKER, crashed=101) == 101


def test_for_a_worker_the_python_thread_that_waits_for_tensorflow_did() -> None:
    waiting = thread(103, frame("TF_SessionRun"), frame("loop", "python"))
    idle_main = thread(100, frame("join"), frame("<module>", "python"))
    assert launched(idle_main, IDLE, WORKER, waiting, crashed=102) == 103
    assert launched(waiting, MAIN, WORKER, crashed=102) == 100  # of several, the main thread


def test_otherwise_the_main_thread_did() -> None:
    idle_main = thread(100, frame("join"), frame("<module>", "python"))
    assert launched(IDLE, idle_main, WORKER, crashed=102) == 100


def test_without_python_nobody_did() -> None:
    assert launched(WORKER, crashed=102) is None


def test_shutting_down_is_seen_in_the_main_thread() -> None:
    leaving = thread(100, frame("H5_term_library"), frame("__run_exit_handlers"), frame("exit"))
    assert is_exiting([WORKER, leaving], 100)
    assert not is_exiting([WORKER, MAIN], 100)
    assert not is_exiting([thread(102, frame("exit")), MAIN], 100)


def test_a_wild_jump_gets_its_caller_from_the_stack() -> None:
    caller, outer = 0x401105, 0x401205
    memory = FakeMemory({0x8000: caller.to_bytes(8, "little"), 0x4010F0: b"\x90" * 16 + bytes.fromhex("e800000000")})
    code = mapping(0x401000, 0x402000, "r-xp", "/lib/x.so")
    found = at_fault(
        thread(1, frame("??", address=0x1234), frame("main", address=outer)),
        {"rip": 0x1234, "rsp": 0x8000},
        memory,
        (mapping(0x8000, 0x9000, "rw-p"), code),
    )
    assert [each.address for each in found.frames] == [0x1234, caller, outer]


def test_a_smashed_stack_gives_guesses_and_keeps_the_python_frames() -> None:
    stack = (0x4141414141414141).to_bytes(8, "little") * 4 + (0x401105).to_bytes(8, "little")
    memory = FakeMemory({0x8000: stack, 0x4010F0: b"\x90" * 16 + bytes.fromhex("e800000000") + b"\x90" * 16})
    found = at_fault(
        thread(1, frame("crash_here", address=0x401005), frame("f", "python")),
        {"rip": 0x401005, "rsp": 0x8000},
        memory,
        (mapping(0x8000, 0x8028, "rw-p"), mapping(0x401000, 0x402000, "r-xp", "/lib/x.so")),
    )
    assert [(each.function, each.approximate) for each in found.frames] == [
        ("crash_here", False),
        ("??", True),
        ("f", False),
    ]
