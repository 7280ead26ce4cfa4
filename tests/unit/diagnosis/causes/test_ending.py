"""Ends that are no native crash: exceptions, exit codes, signals that somebody sent, hangs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.tracebacks import uncaught_exception
from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import Crash, Frame, Limit, Outcome, Output
from recorded_crashes import causes, first, load


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("py_exception", "python-exception"),
        ("fake_exit_139", "clean-exit"),
        ("ext_sighup", "killed-from-outside"),
        ("outside_segv", "killed-from-outside"),
        ("outside_int", "killed-from-outside"),
        ("fake_segv_raised", "signal-raised-by-program"),
        ("self_abort", "signal-raised-by-program"),
        ("library_calls_abort", "signal-raised-by-program"),
        ("kbd", "signal-raised-by-program"),
        ("xcpu_soft", "cpu-time-limit"),
        ("xcpu_hard", "cpu-time-limit"),
        ("op_deadlock", "hang"),
        ("hang_queue", "hang"),
        ("fork_matmul", "fork-after-threads"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


def test_a_program_that_ended_well_gets_no_diagnosis() -> None:
    crash = replace(load("fake_exit_139"), outcome=Outcome(kind="ok", exit_code=0))
    assert causes(crash) == []


# ------------------------------------------------------------------------------------------ exceptions


def test_exception_points_at_the_users_line_and_op() -> None:
    diagnosis = first(load("py_exception"))
    assert diagnosis.location is not None
    assert (diagnosis.location.file.rpartition("/")[2], diagnosis.location.line) == ("main.py", 2)
    assert diagnosis.op == "Reshape"


def test_a_crash_after_a_printed_traceback_is_no_python_exception() -> None:
    crash = load("fake_segv_raised")
    crash = replace(crash, output=Output(stderr=(load("py_exception").output.stderr or "")))
    assert "python-exception" not in causes(crash)


WORKER = '''multiprocessing.pool.RemoteTraceback: 
"""
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/pool.py", line 125, in worker
    result = (True, func(*args, **kwds))
  File "/home/ada/load.py", line 4, in decode
    raise ValueError("bad row")
ValueError: bad row
"""

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/home/ada/load.py", line 9, in <module>
    pool.map(decode, rows)
ValueError: bad row
'''  # noqa: W291
CHAINED = """Traceback (most recent call last):
  File "/home/ada/a.py", line 2, in parse
    int("x")
ValueError: invalid literal

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ada/a.py", line 5, in <module>
    raise RuntimeError("two\\nlines")
RuntimeError: two
lines
"""
QUOTED = """Traceback (most recent call last):
  File "/home/ada/a.py", line 9, in <module>
    for batch in dataset:
tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node f}} KeyError: 'label'
Traceback (most recent call last):

  File "/home/ada/a.py", line 5, in rows
    yield row["label"]

KeyError: 'label'

\t [[{{node PyFunc}}]] [Op:IteratorGetNext]
"""
IGNORED = """Traceback (most recent call last):
  File "/home/ada/a.py", line 7, in <module>
    train()
ValueError: the real one
Exception ignored in: <function File.__del__ at 0x7f>
Traceback (most recent call last):
  File "/home/ada/b.py", line 1, in __del__
    self.close()
OSError: too late
"""
CYTHON = """Traceback (most recent call last):
  File "/home/ada/a.py", line 7, in <module>
    model.save_weights(path)
OSError: [Errno 28] No space left on device
Traceback (most recent call last):
  File "h5py/_objects.pyx", line 223, in h5py._objects.ObjectID.__dealloc__
RuntimeError: Can't decrement id ref count
Exception ignored in: 'h5py._objects.ObjectID.__dealloc__'
"""


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        (WORKER, "ValueError", 4),
        (CHAINED, "RuntimeError", 5),
        (QUOTED, "KeyError", 5),
        (IGNORED, "ValueError", 7),
        (CYTHON, "OSError", 7),
    ],
)
def test_the_exception_that_ended_it(text: str, kind: str, line: int) -> None:
    error = uncaught_exception(text)
    assert error is not None
    assert (error.type, error.frames[0].line) == (kind, line)


def test_a_traceback_whose_beginning_was_lost_is_read() -> None:
    error = uncaught_exception(CHAINED.partition("\n")[2])
    assert error is not None
    assert error.type == "RuntimeError"


def test_an_exception_that_cannot_be_read_is_still_told() -> None:
    crash = replace(load("py_exception"), output=Output(stderr="Traceback (most recent call last):\nValueError\n"))
    assert first(crash).cause == "python-exception"


def test_messages_of_several_lines_are_kept() -> None:
    error = uncaught_exception(CHAINED)
    assert error is not None
    assert error.details == "two\nlines"


# ------------------------------------------------------------------------------------------- exit codes


def test_an_exit_code_of_139_is_called_what_it_is() -> None:
    assert "not a SIGSEGV" in first(load("fake_exit_139")).title


def test_a_shell_that_passes_on_the_death_of_its_child_did_not_exit_by_itself() -> None:
    crash = load("fake_exit_139")
    shell = replace(crash.program, executable="/usr/bin/bash")
    crash = replace(crash, outcome=Outcome(kind="exit", exit_code=137), program=shell)
    assert first(crash).cause == "killed-from-outside"


# --------------------------------------------------------------------------------------------- signals


def test_a_segfault_of_the_cpu_was_sent_by_nobody() -> None:
    for name in ("rlimit_as_grow", "memmap_truncated_file", "op_stack_overflow"):
        assert not {"killed-from-outside", "signal-raised-by-program"} & set(causes(load(name)))


def test_abort_called_by_native_code_is_not_raised_on_purpose() -> None:
    assert "signal-raised-by-program" not in causes(load("vocab_table_huge_size"))


def test_a_signal_that_came_through_faultlens_is_proven() -> None:
    crash = replace(load("ext_sighup"), handed_on=("SIGHUP from process 7",))
    assert first(crash).confidence > 0.95


def test_without_counters_a_sigkill_is_not_blamed_on_anybody_with_confidence() -> None:
    crash = replace(load("ext_sighup"), outcome=Outcome(kind="signal", signal="SIGKILL"), cgroup=None)
    assert first(crash).confidence < 0.6


def test_sigkill_long_before_the_cpu_limit_came_from_outside() -> None:
    crash = replace(load("xcpu_hard"), limits={"RLIMIT_CPU": Limit(soft=3600, hard=3600)})
    assert first(crash).cause == "killed-from-outside"
    assert "cpu-time-limit" not in causes(crash)


@pytest.mark.parametrize(
    ("name", "served"),
    [("SIGTERM", True), ("SIGINT", True), ("SIGUSR1", True)]
    + [(name, False) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP")],
)
def test_a_handler_is_advised_only_where_python_can_serve_it(name: str, served: bool) -> None:
    crash = load("outside_segv")
    assert crash.fault is not None
    sent = replace(crash, fault=replace(crash.fault, signal=name), outcome=Outcome(kind="signal", signal=name))
    found = first(sent)
    assert found.cause == "killed-from-outside"
    assert any("signal.signal(" in fix.detail for fix in found.fixes) is served


OLD_LOG = """\
last night's job log:
F0000 00:00:17 1 tensor.cc:1120] Check failed: limit <= dim0_size (2 vs. 1)
free(): invalid pointer
terminate called after throwing an instance of 'std::bad_alloc'
  what():  std::bad_alloc
"""


def test_what_is_on_the_stack_beats_words_that_were_printed() -> None:
    crash = load("self_abort")
    plain, told = first(crash), first(replace(crash, output=Output(stderr=OLD_LOG)))
    assert told.cause == plain.cause == "signal-raised-by-program"
    assert told.confidence == plain.confidence
    assert not any(fact.source == "rival" for fact in told.evidence)


@pytest.mark.parametrize("name", ["strlen_null", "ctypes_past_the_end", "op_int_div_zero"])
def test_a_terminate_that_was_printed_explains_no_fault(name: str) -> None:
    crash = load(name)
    printed = replace(crash, output=Output(stderr=OLD_LOG))
    assert first(printed).confidence == first(crash).confidence
    assert not {"oversized-allocation", "op-uncaught-exception"} & set(causes(printed))


# ----------------------------------------------------------------------------------------------- hangs


def test_hang_names_the_op_that_waits() -> None:
    diagnosis = first(load("op_deadlock"))
    assert diagnosis.op is not None
    assert "Locked" in diagnosis.op


def test_stuck_child_is_shown_at_its_own_line() -> None:
    crash = load("fork_matmul")
    child = crash.children[0]
    line = Frame(kind="python", function="work", file="/home/ada/train.py", line=5)
    thread = replace(child.threads[0], frames=(*child.threads[0].frames, line))
    crash = replace(crash, children=(replace(child, threads=(thread, *child.threads[1:])),))
    location = first(crash).location
    assert location is not None
    assert location.function == "work"


def test_the_way_out_of_a_fork_names_what_the_program_used() -> None:
    crash = load("fork_matmul")
    (child,) = crash.children
    bare = replace(crash, sources={"/home/ada/project/f.py": "import os\n\npid = os.fork()\n"})
    assert first(bare).fixes[0].title == "start a fresh process in place of fork() at f.py:3"
    bootstrap = Frame(
        kind="python", function="_bootstrap", file="/usr/lib/python3.11/multiprocessing/process.py", line=9
    )
    worker = Frame(kind="python", function="_process_worker", file="/usr/lib/python3.11/concurrent/futures/process.py")
    for frames, told in (((bootstrap,), "set_start_method"), ((worker, bootstrap), "ProcessPoolExecutor(mp_context=")):
        threads = tuple(replace(thread, frames=(*thread.frames, *frames)) for thread in child.threads)
        fix = first(replace(bare, children=(replace(child, threads=threads),))).fixes[0]
        assert told in fix.title + fix.detail


def test_a_child_that_was_started_anew_is_no_forked_copy() -> None:
    crash = load("fork_matmul")
    child = crash.children[0]
    child = replace(child, program=replace(child.program, command=("python", "-c", "spawn_main()")))
    assert causes(replace(crash, children=(child,)))[0] == "hang"


def test_a_child_at_work_is_not_stuck() -> None:
    crash = load("fork_matmul")
    child = crash.children[0]
    busy = replace(child.threads[0], frames=tuple(f for f in child.threads[0].frames if f.kind == "python"))
    child = replace(child, threads=(busy, *child.threads[1:]))
    assert "fork-after-threads" not in causes(replace(crash, children=(child,)))


def test_case_of_an_empty_record_raises_nothing() -> None:
    for kind in ("signal", "exception", "exit", "hang", "ok"):
        diagnose(Crash(outcome=Outcome(kind=kind), method="status"))  # type: ignore[arg-type]
    assert Case(Crash(outcome=Outcome(kind="signal"), method="status")).location is None


def test_a_thread_that_only_joins_others_is_innocent() -> None:
    location = first(load("deadlock_two_threads")).location
    assert location is not None
    assert location.function in ("one", "two")


def test_a_library_that_said_why_it_aborts_is_not_a_signal_raised_on_purpose() -> None:
    crash = load("library_calls_abort")
    complaint = Output(stderr="double free or corruption (out)\n")
    assert causes(replace(crash, output=complaint))[0] != "signal-raised-by-program"
