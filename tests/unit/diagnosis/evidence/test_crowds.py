"""Why there are so many threads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.evidence.crowds import Crowd, crowd, opens_itself
from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import Crash, Fault, Frame, Outcome, Output, Thread

PROGRAM = "/home/ada/project/train.py"
SAID = "F0000 00:00:1.1 7 env.cc:84] Check failed: ret == 0 (11 vs. 0) Thread x creation via pthread_create() failed."
NESTED = """import tensorflow as tf
ds = tf.data.Dataset.range(3)
def gen():
    for item in ds:
        yield item
ds = tf.data.Dataset.from_generator(gen, output_types=tf.int64).batch(2)
"""


def program(text: str, function: str, threads: int) -> Crash:
    abort = Frame(kind="native", function="abort", library="/usr/lib/x86_64-linux-gnu/libc.so.6")
    line = Frame(kind="python", function=function, file=PROGRAM, line=4)
    main = Thread(id=1, frames=(Frame(kind="python", function="<module>", file=PROGRAM, line=7),))
    others = tuple(Thread(id=2 + number, frames=(line,)) for number in range(threads))
    crashed = Thread(id=99, crashed=True, launched=True, frames=(abort, line))
    return Crash(
        outcome=Outcome(kind="signal", signal="SIGABRT"),
        method="agent",
        pid=1,
        fault=Fault(signal="SIGABRT", code="SI_TKILL", thread=99),
        threads=(crashed, main, *others),
        output=Output(stderr=SAID),
        sources={PROGRAM: text},
    )


def test_a_generator_that_opens_itself_is_told_so_and_not_to_start_fewer_threads() -> None:
    found = diagnose(program(NESTED, "gen", threads=40)).diagnoses[0]
    assert found.cause == "thread-limit"
    assert "gen opens itself" in found.title
    assert found.location is not None
    assert found.location.line == 4
    assert "train.py:6" in found.evidence[0].fact
    assert not any("fewer threads" in fix.title or "limit" in fix.title for fix in found.fixes)


@pytest.mark.parametrize(
    "text",
    [
        NESTED.replace("for item in ds", "for item in source"),
        NESTED.replace("def gen()", "def gen(ds)"),  # handed in
        NESTED.replace("    for", "    ds = tf.data.Dataset.range(3)\n    for"),  # its own
        NESTED.replace("from_generator(gen,", "from_generator(other,"),
        "def broken(:",
    ],
)
def test_a_generator_that_reads_another_dataset_does_not(text: str) -> None:
    assert opens_itself(program(text, "gen", threads=40)) is None


def test_methods_open_themselves_as_well() -> None:
    text = (
        "class Data:\n    def gen(self):\n        yield from self.ds\n"
        "    def make(self):\n        self.ds = tf.data.Dataset.from_generator(generator=self.gen)\n"
    )
    found = opens_itself(program(text, "gen", threads=1))
    assert found is not None
    assert (found.generator, found.dataset, found.used.line) == ("gen", "ds", 3)


def test_a_function_on_most_threads_is_named_and_gets_a_pool() -> None:
    crash = program("import threading\n", "download", threads=40)
    assert crowd(crash) == Crowd("download", 41)
    found = diagnose(crash).diagnoses[0]
    assert found.fixes[0].title == "run download on fewer threads at a time"
    assert crowd(replace(crash, threads=crash.threads[:5])) is None
