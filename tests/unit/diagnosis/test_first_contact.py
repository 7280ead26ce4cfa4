"""What programs of independent authors showed at first contact, over records made by hand."""

from __future__ import annotations

from faultlens.diagnosis.evidence.call_arguments import called_at, dataset_call, reader
from faultlens.diagnosis.evidence.callbacks import temporary_callback
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.loader import allocators
from faultlens.diagnosis.evidence.locks import blocked_threads
from faultlens.records.crash import Crash, Fault, Frame, Library, Outcome, Program, Thread

MAIN = "/home/ada/main.py"
CALLBACK = """\
import ctypes
PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_int)
lib = ctypes.CDLL("libsolver.so")
def watch(step):
    print(step)
{}
lib.run()
"""


def native(function: str, library: str) -> Frame:
    return Frame(kind="native", function=function, library=library)


def called_back(source: str) -> Case:
    python, ctypes = (
        "/usr/lib/libpython3.11.so.1.0",
        "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
    )
    frames = (
        native("_PyEval_EvalFrameDefault", python),
        Frame(kind="python", function="watch", file=MAIN, line=5),
        native("_CallPythonObject", ctypes),
        native("ffi_closure_unix64", "/usr/lib/libffi.so.8"),
        native("solver_run", "/home/ada/libsolver.so"),
        Frame(kind="python", function="<module>", file=MAIN, line=7),
    )
    return Case(
        Crash(
            outcome=Outcome(kind="signal", signal="SIGSEGV"),
            method="agent",
            pid=1,
            fault=Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=1),
            threads=(Thread(id=1, crashed=True, launched=True, frames=frames),),
            sources={MAIN: source},
        )
    )


def test_a_callback_that_nobody_keeps() -> None:
    found = temporary_callback(called_back(CALLBACK.format("lib.set_progress(PROGRESS(watch))")))
    assert found is not None
    assert (found.line, found.name) == (6, "PROGRESS")


def test_a_callback_that_is_kept() -> None:
    assert temporary_callback(called_back(CALLBACK.format("kept = PROGRESS(watch); lib.set_progress(kept)"))) is None


def test_the_call_on_a_line() -> None:
    sources = {MAIN: "import os\nops = tf.load_op_library(os.path.join(here, 'ops.so'))\nraise ValueError('no')\n"}
    line = Frame(kind="python", function="<module>", file=MAIN, line=2)
    assert called_at(line, sources) == "load_op_library"
    assert called_at(Frame(kind="python", function="f", file=MAIN, line=2, column=25, end_column=55), sources) == "join"
    assert called_at(Frame(kind="python", function="f", file=MAIN, line=3), sources) is None


def test_where_a_dataset_was_made() -> None:
    sources = {MAIN: "def make(files):\n    return tf.data.TFRecordDataset(files).shuffle(BUFFER)\n"}
    made = dataset_call("ShuffleDatasetV3", sources)
    assert made is not None
    assert made[1].line == 2
    assert reader(sources) == "TFRecordDataset"
    assert dataset_call("BatchDatasetV2", sources) is None


def test_an_allocator_of_ones_own() -> None:
    library = Library(path="/home/ada/libpoolalloc.so", start=0)
    crash = Crash(outcome=Outcome(kind="signal", signal="SIGABRT"), method="agent", libraries=(library,))
    preloaded = Program(environment={"LD_PRELOAD": library.path})
    assert allocators(crash) == ()
    assert allocators(Crash(outcome=crash.outcome, method="agent", libraries=(library,), program=preloaded)) == (
        library.path,
    )


LOCKED = """\
class Stats:
    def update(self, rows):
        with self.lock:
            self.count += 1
def train(stats, batches):
    with stats.lock:
        next(batches)
"""


def test_the_lock_of_an_object_has_other_names_elsewhere() -> None:
    def thread(number: int, function: str, line: int) -> Thread:
        waits = native("PyThread_acquire_lock_timed", "/usr/lib/libpython3.11.so.1.0")
        own = Frame(kind="python", function=function, file=MAIN, line=line)
        return Thread(id=number, frames=(native("sem_wait", "/lib/libc.so.6"), waits, own))

    main, worker = thread(1, "train", 7), thread(2, "update", 3)
    crash = Crash(
        outcome=Outcome(kind="timeout"), method="agent", pid=1, threads=(main, worker), sources={MAIN: LOCKED}
    )
    (held,) = [each for each in blocked_threads(crash) if each.thread.id == 2]
    assert held.holder is not None
    assert (held.holder.id, held.taken_at, held.same_name) == (1, 6, True)
