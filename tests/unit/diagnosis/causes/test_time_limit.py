"""A program whose time is up: it worked, it hung, or it cannot be told; who holds what the others wait for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.evidence.pace import pace
from faultlens.diagnosis.evidence.standing import standing
from faultlens.records.crash import Activity, Address, Crash, Frame, Lock, Outcome, Output, Progress, Sample, Thread
from faultlens.records.diagnosis import Diagnosis
from faultlens.report.headline import kind_of_end
from faultlens.report.make import make_report
from recorded_crashes import causes, claim, first, load

FILE = "/home/ada/train.py"
LOCK = ("futex_wait", "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock")
MUTEX = ("futex_wait", "__GI___lll_lock_wait", "__pthread_mutex_lock")
GIL = ("futex_wait", "pthread_cond_timedwait", "take_gil")
SOURCE = """\
def one():
    with a:
        rest()
        with b:
            pass


def two():
    b.acquire()
    rest()
    a.acquire()


class Box:
    def add(self):
        with self.lock:
            self.total()

    def total(self):
        with self.lock:
            return 1
"""


def thread(
    number: int, native: Sequence[str], *python: tuple[str, int], library: str = FILE, **fields: object
) -> Thread:
    frames = [Frame(kind="native", function=name, library="/usr/lib/libc.so.6") for name in native]
    frames += [Frame(kind="python", function=name, file=library, line=line) for name, line in python]
    return Thread(id=number, frames=tuple(frames), **fields)  # type: ignore[arg-type]


def ended(*threads: Thread, **activity: object) -> Crash:
    """At a limit of 60 seconds, of which the last ten were watched."""
    return Crash(
        outcome=Outcome(kind="timeout", signal="SIGTERM"),
        method="agent",
        pid=threads[0].id,
        seconds=60.2,
        threads=(replace(threads[0], launched=True), *threads[1:]),
        activity=Activity(limit=60, seconds=10, **{"cpu": 0.01, "read": 0, "written": 0, **activity}),  # type: ignore[arg-type]
        sources={FILE: SOURCE},
    )


def said(diagnosis: Diagnosis) -> str:
    return "\n".join([diagnosis.title, *(item.fact for item in diagnosis.evidence)])


# ------------------------------------------------------------------------------------------------- at work


def test_a_training_is_no_hang_and_tells_how_long_it_needs() -> None:
    crash = load("timeout_training")
    diagnosis = first(crash)
    assert diagnosis.cause == "time-limit"
    assert diagnosis.confidence >= 0.95
    assert "step 312 of 10,000" in diagnosis.title
    assert "about 2 min more" in said(diagnosis)
    assert "--timeout 1" in diagnosis.fixes[0].detail
    assert "hang" not in causes(crash)
    assert kind_of_end(crash) == "timeout"


@pytest.mark.parametrize(
    ("crash", "words"),
    [
        (ended(thread(1, ["dgemm"], ("work", 3), cpu=9.7), cpu=9.7), "computed on 1.0 CPUs"),
        (ended(thread(1, ["read"], ("load", 3)), read=50 << 20), "read and wrote 5 MiB per second"),
        (ended(thread(1, ["clock_nanosleep"], ("load", 3)), written=50 << 20), "read and wrote 5 MiB per second"),
        (
            ended(
                thread(1, ["futex_wait", "BlockingCounter::Wait"], ("work", 3)), thread(2, ["dgemm"], cpu=5.0), cpu=5.0
            ),
            "computed",
        ),
    ],
)
def test_cpu_time_and_io_are_work(crash: Crash, words: str) -> None:
    diagnosis = first(crash)
    assert diagnosis.cause == "time-limit"
    assert words in diagnosis.title
    assert kind_of_end(crash) == "timeout"


def test_who_sleeps_and_writes_in_between_is_at_work() -> None:
    sleeping = thread(1, ["clock_nanosleep", "time_sleep"], ("next_batch", 4), moved=157)
    crash = replace(ended(sleeping, written=157), output=Output(stdout="batch 1 of 9\nbatch 2 of 9\nbatch 3 of 9\n"))
    for each in (crash, replace(crash, output=Output())):
        assert first(each).cause == "time-limit"
        assert first(each).title == "still working at the time limit of 60 s: it slept, and wrote in between"
        assert "wrote 157 bytes" in said(first(each))
        assert kind_of_end(each) == "timeout"


def polls(quiet: float = 0.5, **fields: object) -> Crash:
    """`while not done.wait(1): print(…)`"""
    waiting = thread(1, LOCK, ("wait", 629), library="/usr/lib/python3.11/threading.py", moved=90)
    line = Frame(kind="python", function="watch", file=FILE, line=4)
    crash = ended(replace(waiting, frames=(*waiting.frames, line)), written=90, idle=10.0, quiet=quiet)
    return replace(crash, output=Output(**fields))  # type: ignore[arg-type]


def test_who_never_waits_for_long_and_writes_something_new_is_at_work() -> None:
    found = first(polls(stdout="3 of 90 done\n4 of 90 done\n5 of 90 done\n"))
    assert found.cause == "time-limit"
    assert found.title.endswith("it waited again and again, and wrote in between")
    assert standing(polls()).state == "unclear"  # it wrote, but nobody saw what


@pytest.mark.parametrize(
    "crash",
    [
        polls(stdout="still waiting\n" * 3),
        polls(stdout="12:00:01 waiting, 1 s\n12:00:02 waiting, 2 s\n12:00:03 waiting, 3 s\n"),  # only the time goes on
        polls(stdout="3 of 90 done\n4 of 90 done\n5 of 90 done\n", quiet=9.0),  # and then nothing more
    ],
)
def test_who_only_says_that_he_waits_hangs(crash: Crash) -> None:
    assert first(crash).cause == "hang"


def test_a_program_that_waits_for_a_busy_child_works() -> None:
    child = ended(thread(7, ["dgemm"], ("work", 3), cpu=9.0), cpu=9.0)
    parent = replace(ended(thread(1, ["wait4"], ("main", 3))), children=(child,))
    assert first(parent).cause == "time-limit"
    assert "child process 7" in said(first(parent))


def test_an_endless_loop_cannot_be_ruled_out_where_no_step_is_known() -> None:
    assert causes(ended(thread(1, ["sum"], ("work", 3), cpu=9.7), cpu=9.7)) == ["time-limit", "hang"]


def test_the_time_that_is_needed_counts_what_is_done_between_epochs() -> None:
    samples = tuple(Sample(seconds=float(at), steps=at * 10) for at in range(1, 60))
    crash = replace(
        ended(thread(1, ["dgemm"], ("fit", 3), cpu=9.0), cpu=9.0, steps=100),
        timeline=samples,
        progress=Progress(phase="train", epoch=2, epochs=4, step=90, steps=100, seconds_before=0.1),
    )
    found = pace(crash)
    assert found is not None
    assert (round(found.per_second), found.done, found.total) == (10, 190, 400)
    assert found.seconds_left == pytest.approx(21)


# ----------------------------------------------------------------------------------------------- not at work


@pytest.mark.parametrize(
    "crash",
    [
        ended(thread(1, LOCK, ("one", 4))),
        replace(
            ended(thread(1, ["clock_nanosleep", "time_sleep"], ("poll", 3)), written=120),
            output=Output(stdout="still waiting\n" * 10, stderr="begins\n"),
        ),
        ended(
            thread(1, ["clock_nanosleep", "time_sleep"], ("poll", 3), moved=0),
            thread(2, LOCK, ("beat", 9), moved=120),  # another thread wrote
            written=120,
        ),
        ended(thread(1, ["clock_nanosleep", "time_sleep"], ("poll", 3), moved=300), read=300),
        ended(thread(1, ["wait4"], ("main", 3))),
    ],
)
def test_who_does_nothing_hangs(crash: Crash) -> None:
    assert first(crash).cause == "hang"
    assert kind_of_end(crash) == "hang"


@pytest.mark.parametrize(("steps", "kind"), [(5, "timeout"), (0, "hang")])
def test_the_outcome_of_a_report_says_whether_it_hung(steps: int, kind: str) -> None:
    crash = ended(thread(1, ["epoll_wait"], ("wait", 3)), steps=steps)
    assert crash.outcome.kind == "timeout"
    assert make_report(crash).outcome == Outcome(kind=kind, signal="SIGTERM")  # type: ignore[arg-type]


def test_a_loop_that_stands_still_is_not_at_work_for_its_cpu_time() -> None:
    samples = tuple(Sample(seconds=float(at), steps=min(at, 20) * 10) for at in range(1, 60))
    crash = replace(
        ended(thread(1, ["sum"], ("callback", 3), cpu=9.0), cpu=9.0, steps=0),
        timeline=samples,
        progress=Progress(phase="train", step=200, steps=1000, seconds_before=40.0),
    )
    diagnosis = first(crash)
    assert diagnosis.cause == "hang"
    assert "no step of its loop for 40 s" in said(diagnosis)


def test_a_core_of_a_living_process_tells_nothing_of_work() -> None:
    crash = replace(ended(thread(1, ["dgemm"], ("work", 3))), outcome=Outcome(kind="hang"), activity=None)
    diagnosis = first(crash)
    assert (diagnosis.cause, claim(crash)) == ("hang", 0.5) and diagnosis.confidence <= 0.5


# -------------------------------------------------------------------------------------------- who holds what


def test_a_mutex_and_the_gil() -> None:
    diagnosis = first(load("deadlock_mutex_gil"))
    assert diagnosis.title.startswith("deadlock: the main thread waits for the mutex at ")
    assert "(taker) waits for the GIL in line 7, which the main thread holds" in diagnosis.title
    assert diagnosis.confidence >= 0.95
    assert "release the GIL" in diagnosis.fixes[0].title


def test_python_locks_are_known_by_the_source() -> None:
    title = first(load("deadlock_two_threads")).title
    assert "(two) waits for `a` in line 11" in title
    assert "(one) waits for `b` in line 7, which thread 13239 (two) holds" in title


def test_a_busy_thread_beside_a_deadlock_changes_nothing() -> None:
    threads = [
        thread(1, LOCK, ("join", 1119), ("main", 40), library="/usr/lib/python3.11/threading.py"),
        thread(2, LOCK, ("one", 4)),
        thread(3, LOCK, ("two", 11)),
        thread(4, ["sum"], ("spin", 30), cpu=9.9),
    ]
    diagnosis = first(ended(*threads, cpu=9.9))
    assert diagnosis.cause == "hang"
    assert "thread 2 (one) waits for `b` in line 4, which thread 3 (two) holds since line 9" in said(diagnosis)
    assert "thread 3 (two) waits for `a` in line 11, which thread 2 (one) holds since line 2" in said(diagnosis)
    assert "thread 4 (spin) was busy in spin (line 30), and none of these wait for it" in said(diagnosis)


def test_a_busy_thread_beside_a_lock_of_unknown_holder_is_told_of() -> None:
    crash = ended(thread(1, MUTEX, ("work", 3)), thread(2, ["sum"], ("spin", 30), cpu=9.9), cpu=9.9)
    assert causes(crash) == ["hang", "time-limit"]
    assert "thread 2 (spin) was busy" in said(first(crash))


def test_who_waits_for_a_lock_whose_holder_works_works() -> None:
    lock = Lock(kind="mutex", address=Address(0x1000), holder=2)
    crash = ended(thread(1, MUTEX, ("work", 3), lock=lock), thread(2, ["sum"], ("spin", 30), cpu=9.9), cpu=9.9)
    assert standing(crash).state == "computing"


def test_a_lock_that_is_taken_twice() -> None:
    diagnosis = first(ended(thread(1, LOCK, ("total", 20), ("add", 17))))
    assert "waits for `self.lock` in line 20, which it holds itself" in diagnosis.title
    assert "if that is the same lock" in said(diagnosis)  # `self` may be another one
    assert "RLock" in diagnosis.fixes[0].detail


def test_who_worked_at_first_and_then_waits_hangs() -> None:
    """The first step of a loop is counted when it begins: the data for it never came."""
    crash = replace(
        ended(thread(1, ["futex_wait", "BlockingCounter::Wait"], ("train", 3), cpu=2.0), cpu=2.0, steps=1, idle=6.0),
        timeline=(Sample(seconds=59.0, steps=1),),
        progress=Progress(phase="data", step=1, seconds_before=6.0),
    )
    assert first(crash).cause == "hang"


def test_a_slow_loop_rests_between_its_steps() -> None:
    crash = replace(
        ended(thread(1, ["futex_wait", "BlockingCounter::Wait"], ("train", 3)), steps=1, idle=8.0),
        timeline=tuple(Sample(seconds=float(at), steps=1 + at // 9) for at in range(60)),
        progress=Progress(phase="train", step=7, seconds_before=8.0),
    )
    assert first(crash).cause == "time-limit"


@pytest.mark.parametrize("number", [0.0, -1.0, 1e-320, 1e308])
def test_absurd_numbers_of_a_damaged_report_do_no_harm(number: float) -> None:
    crash = ended(thread(1, ["sum"], ("work", 3), cpu=number), cpu=number, steps=7, read=1 << 62)
    crash = replace(crash, activity=replace(crash.activity, seconds=number, limit=number, idle=number))
    progress = Progress(phase="train", step=1, steps=10**12, epoch=1, epochs=10**9, seconds_before=number)
    assert causes(replace(crash, progress=progress))
    assert causes(replace(crash, activity=replace(crash.activity, steps=None)))


def test_an_event_loop_with_nothing_to_do() -> None:
    native = ["epoll_wait", "select_epoll_poll_impl"]
    inside = (
        ("select", 468, "/usr/lib/python3.11/selectors.py"),
        ("_run_once", 1884, "/usr/lib/python3.11/asyncio/base_events.py"),
        ("run_until_complete", 653, "/usr/lib/python3.11/asyncio/base_events.py"),
        ("run", 190, "/usr/lib/python3.11/asyncio/runners.py"),
        ("<module>", 6, FILE),
    )
    waiting = thread(1, native)
    frames = tuple(Frame(kind="python", function=name, line=line, file=file) for name, line, file in inside)
    crash = ended(replace(waiting, frames=(*waiting.frames, *frames)))
    found = first(crash)
    assert (found.cause, claim(crash)) == ("hang", 0.75)
    assert found.title == "no progress: the event loop of asyncio has nothing to do"
    assert "wait, for each other or for something outside" in said(found)
    assert "input" not in said(found)
    assert not any("join()" in fix.detail for fix in found.fixes)
    own = (Frame(kind="python", function="poll", line=3, file=FILE), *frames)  # a task that blocks the loop
    blocking = first(ended(replace(waiting, frames=(*waiting.frames, *own))))
    assert "input from a pipe, socket or file" in blocking.title


def test_what_the_other_threads_of_the_program_wait_for_is_told() -> None:
    waiting = thread(2, ["clock_nanosleep"], ("load", 30))
    diagnosis = first(ended(thread(1, ["futex_wait", "BlockingCounter::Wait"], ("train", 3)), waiting))
    assert "thread 2 (load) waits for time to pass in load (line 30)" in said(diagnosis)
