"""What is waited for, by name, and who could end it."""

from __future__ import annotations

import ast

import pytest

from faultlens.diagnosis.evidence.awaited import awaited, is_reached, mentions
from faultlens.diagnosis.evidence.messages import stragglers
from faultlens.diagnosis.evidence.telling_lines import telling_lines
from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import Activity, Crash, Frame, Outcome, Output, Thread
from faultlens.records.diagnosis import Diagnosis

FILE = "/home/ada/train.py"
LIBRARY = "/home/ada/venv/lib/python3.11/site-packages/tensorflow"
LOCK = ("futex_wait", "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock")
SOURCE = """\
import queue
items = queue.Queue()
def produce(n):
    for i in range(n):
        items.put(i)
def consume():
    return items.get()
produce(3)
consume()
"""


def python(function: str, line: int, file: str = FILE) -> Frame:
    return Frame(kind="python", function=function, file=file, line=line)


def waiting(number: int, *frames: Frame, native: tuple[str, ...] = LOCK, **fields: object) -> Thread:
    inner = tuple(Frame(kind="native", function=name, library="/usr/lib/libc.so.6") for name in native)
    return Thread(id=number, frames=(*inner, *frames), **fields)  # type: ignore[arg-type]


def in_queue(line: int, function: str = "consume") -> tuple[Frame, ...]:
    return python("get", 171, "/usr/lib/python3.11/queue.py"), python(function, line), python("<module>", 9)


def hung(*threads: Thread, source: str = SOURCE, stderr: str = "") -> Crash:
    return Crash(
        outcome=Outcome(kind="timeout", signal="SIGTERM"),
        method="agent",
        pid=1,
        threads=threads,
        activity=Activity(limit=60.0, seconds=10.0, cpu=0.0, read=0, written=0, idle=10.0, quiet=10.0),
        sources={FILE: source},
        output=Output(stderr=stderr),
    )


def first(crash: Crash) -> Diagnosis:
    return diagnose(crash).diagnoses[0]


def test_a_queue_that_nobody_fills_any_more_is_named_with_who_did() -> None:
    found = first(hung(waiting(1, *in_queue(7), launched=True)))
    assert found.cause == "hang"
    assert found.title == (
        "no progress: it waits for an item in a queue: `items.get()`, and no thread is on the way to `items.put()` "
        "(train.py:5)"
    )
    assert found.fixes[0].title == "look at why produce does not get to `items.put()` (train.py:5)"
    assert found.fixes[1].detail == "items.get(timeout=…)"


def test_one_that_no_line_fills_at_all() -> None:
    found = first(hung(waiting(1, *in_queue(7), launched=True), source=SOURCE.replace("items.put(i)", "pass")))
    assert found.title.endswith("`items.get()`, and no line of the program puts anything in")
    assert found.fixes[0].title == "let somebody call `items.put()`"


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace("items.put(i)", "pass") + "start(items)\n",  # who knows what they do with it
        SOURCE.replace("items.put(i)", "pass") + "others = [items]\n",
    ],
)
def test_of_one_that_is_handed_on_nothing_is_claimed(source: str) -> None:
    assert first(hung(waiting(1, *in_queue(7), launched=True), source=source)).title.endswith("`items.get()`")


def test_nor_of_what_is_no_queue() -> None:
    source = SOURCE.replace("queue.Queue()", "make()").replace("items.put(i)", "pass")
    assert first(hung(waiting(1, *in_queue(7), launched=True), source=source)).title.endswith("`items.get()`")


def test_a_barrier_is_told_how_many_have_come() -> None:
    source = "import threading\ngate = threading.Barrier(3)\ndef work(i):\n    gate.wait()\n"
    inside = python("wait", 600, "/usr/lib/python3.11/threading.py")
    threads = [waiting(number, inside, python("work", 4), launched=number == 1) for number in (1, 2)]
    found = first(hung(*threads, source=source))
    assert found.title.endswith("`gate.wait()`, to which 2 of 3 have come")
    assert found.fixes[0].title == "start as many threads as the Barrier is made for (3)"


def test_a_thread_that_an_exception_ended_is_named() -> None:
    said = (
        "Exception in thread Thread-1 (produce):\nTraceback (most recent call last):\n"
        '  File "/home/ada/train.py", line 5, in produce\nValueError: bad item\n'
    )
    found = first(hung(waiting(1, *in_queue(7), launched=True), stderr=said))
    assert found.title.endswith("`items.get()`, and thread Thread-1 (produce) ended by ValueError: bad item")
    assert found.fixes[0].title == "mend what ended thread Thread-1 (produce): ValueError: bad item"


def test_nor_while_somebody_is_on_the_way() -> None:
    busy = waiting(2, python("produce", 4))
    crash = hung(waiting(1, *in_queue(7), launched=True), busy)
    assert first(crash).title.endswith("`items.get()`")
    named = awaited(crash, python("consume", 7))
    assert named is not None
    assert is_reached(crash, named.enders[0])


def test_a_line_that_waits_for_two_things_names_neither() -> None:
    crash = hung(waiting(1), source="a.get(), b.get()\n")
    assert awaited(crash, python("<module>", 1)) is None
    assert awaited(crash, None) is None


def test_code_that_tensorflow_calls_back_is_what_it_waits_for() -> None:
    called_back = (
        *in_queue(7)[:2],
        python("generator_py_func", 263, f"{LIBRARY}/python/data/ops/from_generator_op.py"),
    )
    launched = waiting(1, python("<module>", 9), native=("syscall", "absl::CondVar::WaitCommon"), launched=True)
    found = first(hung(launched, waiting(2, *called_back)))
    assert found.location is not None
    assert (found.location.line, found.op) == (7, "Dataset.from_generator")


def test_what_is_told_of_a_wait_is_kept_in_the_report() -> None:
    assert {2, 5, 7} <= telling_lines(hung(waiting(1)))[FILE]
    assert mentions([ast.parse("x = 1\n")]) == {0: set()}


def test_missing_workers_are_named() -> None:
    said = (
        "I0000 coordination_service.cc:502] Waiting for 1/2 tasks to connect.\n"
        "I0000 coordination_service.cc:505] Example stragglers:\n/job:worker/replica:0/task:1\nI0000 other\n"
    )
    launched = waiting(1, python("<module>", 9), native=("syscall", "absl::Notification::WaitForNotification"))
    found = first(hung(launched, stderr=said))
    assert found.title == "no progress: it waits for /job:worker/replica:0/task:1, which has not connected"
    assert found.fixes[0].title == "start /job:worker/replica:0/task:1"
    assert stragglers(hung(stderr=said.partition("\n")[0])) == "1 of 2 tasks of the cluster"
    assert stragglers(hung(stderr=said + "I0000 All 2 tasks have connected\n")) is None
    assert stragglers(hung()) is None
