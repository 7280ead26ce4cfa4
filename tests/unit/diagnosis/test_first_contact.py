"""What programs of independent authors showed at first contact, over records made by hand."""

from __future__ import annotations

import struct

from msgspec.structs import replace

from faultlens.diagnosis.evidence.call_arguments import called_at, dataset_call, reader
from faultlens.diagnosis.evidence.callbacks import temporary_callback
from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.children import subject_of
from faultlens.diagnosis.evidence.loader import allocators
from faultlens.diagnosis.evidence.locks import blocked_threads
from faultlens.records.crash import (
    Activity,
    Address,
    CppException,
    Crash,
    Fault,
    Frame,
    Kernel,
    Library,
    Outcome,
    Output,
    Program,
    Tensor,
    Thread,
)
from recorded_crashes import first

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
    read = {MAIN: "ds.interleave(read, cycle_length=unlimited)\n"}
    assert dataset_call("ParallelInterleaveDatasetV4", read) is not None


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


# ------------------------------------------------------------------------------- round 2 and 3


def died(*frames: Frame, signal: str = "SIGSEGV", stderr: str = "", **known: object) -> Crash:
    return Crash(
        outcome=Outcome(kind="signal", signal=signal),
        method="agent",
        pid=1,
        fault=Fault(
            signal=signal, code="SI_TKILL" if signal == "SIGABRT" else "SEGV_MAPERR", thread=1, address=Address(0)
        ),
        threads=(Thread(id=1, crashed=True, launched=True, frames=frames),),
        output=Output(stderr=stderr),
        **known,  # type: ignore[arg-type]
    )


def test_output_that_could_not_be_written_at_the_end() -> None:
    said = "Exception ignored in: <_io.TextIOWrapper name='<stdout>' mode='w' encoding='utf-8'>\n{}\n"
    full, gone = "OSError: [Errno 28] No space left on device", "BrokenPipeError: [Errno 32] Broken pipe"
    ended = Crash(outcome=Outcome(kind="exit", exit_code=120), method="status", output=Output(stderr=said.format(full)))
    assert first(ended).cause == "disk-full"
    assert first(replace(ended, output=Output(stderr=said.format(gone)))).cause == "clean-exit"
    assert first(replace(ended, outcome=Outcome(kind="exit", exit_code=3))).cause == "clean-exit"


def test_what_was_thrown_before_had_been_caught() -> None:
    thrown = CppException(type="pybind11::error_already_set", thread=1, seconds_before=0.5)
    frames = (
        native("abort", "/lib/libc.so.6"),
        native("std::terminate()", "/lib/libstdc++.so.6"),
        native("std::thread::~thread()", "/home/ada/metered.so"),
        native("__run_exit_handlers", "/lib/libc.so.6"),
    )
    said = "terminate called without an active exception\n"
    crash = died(*frames, signal="SIGABRT", stderr=said, exceptions=(thrown,), exiting=True)
    assert Case(crash).thrown is None
    assert first(crash).cause == "native-thread-at-exit"


def test_a_function_that_an_installed_package_calls_by_mistake() -> None:
    package = "/home/ada/venv/lib/python3.11/site-packages/h5py.libs/libhdf5.so.310"
    frames = (
        native("compress2", "/home/ada/libdsp.so"),
        native("H5Z__filter_deflate", package),
        Frame(kind="python", function="main", file=MAIN, line=2),
    )
    shared = {MAIN: "dsp = ctypes.CDLL('libdsp.so', mode=ctypes.RTLD_GLOBAL)\nfile.create_dataset('x')\n"}
    found = first(died(*frames, sources=shared))
    assert found.cause == "duplicate-native-library"
    assert found.title.startswith("libhdf5.so.310 called compress2 of libdsp.so")
    alone = {MAIN: "dsp = ctypes.CDLL('libdsp.so')\nfile.create_dataset('x')\n"}
    assert first(died(*frames, sources=alone)).cause != "duplicate-native-library"


def test_a_worker_that_died_some_seconds_before_its_program_failed() -> None:
    worker = replace(died(native("raise_", "/home/ada/x.so")), pid=2, seconds=4.0)
    program = Crash(outcome=Outcome(kind="exit", exit_code=3), method="agent", pid=1, seconds=9.0, children=(worker,))
    assert subject_of(program) is worker
    assert subject_of(replace(program, seconds=90.0)) is not worker
    assert subject_of(replace(program, outcome=Outcome(kind="exit", exit_code=1))) is not worker
    other = replace(worker, program=Program(command=("convert", "a.png")))
    assert subject_of(replace(program, children=(other,))) is not other


def test_an_op_that_never_ends_over_numbers_that_are_none() -> None:
    rate = Tensor(dtype="float32", shape=(2,), contents=struct.pack("<2f", 4.0, float("nan")))
    shape = Tensor(dtype="int32", shape=(1,), contents=struct.pack("<i", 100))
    kernel = Kernel(op="RandomPoissonV2", node="n", thread=1, inputs=(shape, rate), at_fault=True)
    frames = (native("RandomPoissonOp::Compute", "/x/libtensorflow_cc.so.2"),)
    own = Frame(kind="python", function="simulate", file=MAIN, line=1)
    crash = Crash(
        outcome=Outcome(kind="timeout", signal="SIGKILL"),
        method="agent",
        pid=1,
        seconds=25.0,
        activity=Activity(limit=25.0, seconds=10.0, cpu=9.8, read=0, written=0, quiet=10.0),
        threads=(Thread(id=1, launched=True, cpu=9.8, frames=(*frames, own)),),
        kernels=(kernel,),
    )
    found = first(crash)
    assert (found.cause, found.op) == ("hang", "RandomPoissonV2")
    assert found.title == "RandomPoissonV2 does not come to an end: `rate` holds nan"
    sound = replace(kernel, inputs=(shape, Tensor(dtype="float32", shape=(2,), contents=struct.pack("<2f", 4.0, 1.0))))
    assert first(replace(crash, kernels=(sound,))).cause == "time-limit"
