"""What was said just before the end decides, also where nothing but the exit status was seen."""

from __future__ import annotations

import pytest

from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import Activity, Crash, Fault, Frame, Outcome, Output, Thread
from recorded_crashes import first

SOURCE = "import ctypes\nlibrary = ctypes.CDLL('./table.so')\nlibrary.load()\n"
MODEST = 0.8

ABORTED = [
    ("free(): invalid pointer", "heap-corruption"),
    ("malloc(): unaligned tcache chunk detected", "heap-corruption"),
    ("malloc_consolidate(): unaligned fastbin chunk detected", "heap-corruption"),
    ("corrupted size vs. prev_size while consolidating", "heap-corruption"),
    ("python: malloc.c:2617: sysmalloc: Assertion `(old_top == initial_top (av))' failed.", "heap-corruption"),
    ("Fatal glibc error: malloc.c:2599 (sysmalloc): assertion failed: (old_top == initial_top)", "heap-corruption"),
    ("*** stack smashing detected ***: terminated", "native-stack-smash"),
    ("*** buffer overflow detected ***: terminated", "native-stack-smash"),
    ("cannot allocate memory for thread-local data: ABORT", "address-space-limit"),
    (
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        "oversized-allocation",
    ),
    (
        "terminate called after throwing an instance of 'std::system_error'\n"
        "  what():  Resource temporarily unavailable",
        "thread-limit",
    ),
    (
        "terminate called after throwing an instance of 'std::runtime_error'\n"
        "  what():  random_device could not be read",
        "file-descriptor-limit",
    ),
    ("terminate called after throwing an instance of 'std::out_of_range'\n  what():  map::at", "op-uncaught-exception"),
    ("terminate called without an active exception", "native-thread-at-exit"),
    ("FATAL: exception not rethrown", "native-thread-at-exit"),
    (
        "F0000 00:00:1763294400.000213    4242 env.cc:98] Check failed: ret == 0 (11 vs. 0)"
        "Thread tf_foo creation via pthread_create() failed.",
        "thread-limit",
    ),
    ("OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 64: Resource temporarily", "thread-limit"),
    ("OMP: Error #34: System unable to allocate necessary resources for OMP thread:", "thread-limit"),
    ("OMP: Error #15: Initializing libomp.so, but found libiomp5.so already initialized.", "duplicate-openmp"),
    (
        "[libprotobuf FATAL google/protobuf/stubs/common.cc:83] This program was compiled against version 3.9.2 of the "
        "Protocol Buffer runtime library, which is not compatible with the installed version (3.19.4).",
        "protobuf-mismatch",
    ),
    (
        "[libprotobuf ERROR google/protobuf/descriptor_database.cc:642] File already exists in database: a.proto",
        "duplicate-native-library",
    ),
    ("Fatal Python error: none_dealloc: deallocating None", "native-refcount"),
    ("Fatal Python error: take_gil: NULL tstate", "native-without-gil"),
    ("Fatal Python error: _Py_CheckRecursiveCall: Cannot recover from stack overflow.", "stack-overflow"),
    ("LLVM ERROR: Cannot select: t1: v4f32", "compiler-bug"),
    ("F0000 00:00:1763294400.000213    4242 tensor.cc:1120] Check failed: limit <= dim0 (10 vs. 9)", "op-check-failed"),
    ("2024-01-01 00:00:00.1: F tensorflow/core/x.cc:587] Check failed: size >= 0 (-5 vs. 0)", "op-check-failed"),
    ("python: ../nptl/pthread_mutex_lock.c:117: ___pthread_mutex_lock: Assertion `owner == 0' failed.", "unknown"),
    (
        "F0000 00:00:1763294400.000213    4242 coordination_service_agent.cc:500] Terminating process because the "
        "distributed service detected fatal errors.",
        "unknown",
    ),
    ("pure virtual method called\nterminate called without an active exception", "unknown"),
    ("nothing that anybody knows", "unknown"),
]


def died(said: str, signal: str = "SIGABRT", **known: object) -> Crash:
    """Nothing was seen but the status and what was printed."""
    return Crash(
        outcome=Outcome(kind="signal", signal=signal),
        method="status",
        pid=42,
        output=Output(stderr=f"Epoch 1/3\n{said}\n"),
        **known,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("said", "cause"), ABORTED)
def test_words_alone(said: str, cause: str) -> None:
    found = diagnose(died(said)).diagnoses[0]
    assert found.cause == cause
    assert len(found.evidence) >= 1
    assert found.fixes


def caller(said: str) -> Frame:
    """Who called abort(): glibc, the C++ runtime, Python or TensorFlow."""
    name, library = "__libc_message", "/lib/x86_64-linux-gnu/libc.so.6"
    if "terminate" in said:
        name, library = "std::terminate()", "/lib/x86_64-linux-gnu/libstdc++.so.6"
    elif "Python" in said:
        name, library = "fatal_error", "/usr/lib/libpython3.11.so.1.0"
    elif "Check failed" in said:
        name, library = "tsl::Fatal()", "/usr/lib/python3/site-packages/tensorflow/libtensorflow_framework.so.2"
    return Frame(kind="native", function=name, library=library)


@pytest.mark.parametrize(
    ("said", "cause"), [(said, cause) for said, cause in ABORTED if cause not in ("op-uncaught-exception", "unknown")]
)
def test_with_a_stack_that_shows_nobody(said: str, cause: str) -> None:
    libc = [
        Frame(kind="native", function=name, library="/lib/libc.so.6") for name in ("pthread_kill", "raise", "abort")
    ]
    user = Frame(kind="python", function="main", file="/home/ada/train.py", line=3)
    stack = (*libc, caller(said), user)
    crash = Crash(
        outcome=Outcome(kind="signal", signal="SIGABRT"),
        method="agent",
        pid=42,
        output=Output(stderr=f"{said}\n"),
        fault=Fault(signal="SIGABRT", code="SI_TKILL", thread=42),
        threads=(Thread(id=42, frames=stack, crashed=True),),
    )
    assert first(crash).cause == cause


def test_words_alone_are_never_certain_of_a_bug() -> None:
    for said, cause in ABORTED:
        if cause.startswith(("native-", "op-", "compiler-")):
            assert diagnose(died(said)).diagnoses[0].confidence < MODEST


@pytest.mark.parametrize(
    ("code", "said", "cause"),
    [
        (127, "cannot allocate memory for thread-local data: ABORT", "address-space-limit"),
        (1, "libgomp: Thread creation failed: Resource temporarily unavailable", "thread-limit"),
        (1, "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.", "duplicate-openmp"),
        (127, "python: symbol lookup error: /a/_x.so: undefined symbol: foo", "wrong-library-loaded"),
        (
            1,
            "python: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /a/_x.so)",
            "wrong-library-loaded",
        ),
        (3, "OMP: Error #15: Initializing libomp.so" + "\nit went on" * 9, "clean-exit"),
        (3, "no more rows", "clean-exit"),
    ],
)
def test_a_library_that_calls_exit_says_why(code: int, said: str, cause: str) -> None:
    crash = Crash(
        outcome=Outcome(kind="exit", exit_code=code), method="status", output=Output(stderr=f"hello\n{said}\n")
    )
    assert diagnose(crash).diagnoses[0].cause == cause


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("ImportError: /a/_x.so: undefined symbol: _ZN10tensorflow8OpKernelE", "custom-op-abi-mismatch"),
        (
            "ImportError: /lib/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /a/_x.so)",
            "wrong-library-loaded",
        ),
        ("ImportError: numpy.core.multiarray failed to import", "numpy-abi-mismatch"),
        (
            "ImportError: /a/x.so: failed to map segment from shared object: Cannot allocate memory",
            "address-space-limit",
        ),
        ("ImportError: /a/x.so: cannot allocate memory in static TLS block", "python-exception"),
        ("ModuleNotFoundError: No module named 'x'", "python-exception"),
    ],
)
def test_an_import_that_fails(said: str, cause: str) -> None:
    text = (
        f'Traceback (most recent call last):\n  File "/home/ada/train.py", line 3, in <module>\n    import x\n{said}\n'
    )
    crash = Crash(outcome=Outcome(kind="exception", exit_code=1), method="status", output=Output(stderr=text))
    assert first(crash).cause == cause


def test_whose_exception_it_was_is_told_by_the_sources() -> None:
    said = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad table"
    assert first(died(said, sources={"/home/ada/train.py": SOURCE})).cause == "native-uncaught-exception"


def test_a_module_for_another_numpy() -> None:
    said = "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.0 as it may crash."
    assert first(died(said, "SIGSEGV")).cause == "numpy-abi-mismatch"


def test_the_line_that_faulthandler_printed() -> None:
    said = (
        "Fatal Python error: Segmentation fault\n\nThread 0x00007f01 (most recent call first):\n"
        '  File "/home/ada/wait.py", line 9 in wait\n\nCurrent thread 0x00007f02 (most recent call first):\n'
        '  File "/usr/lib/python3/site-packages/tensorflow/python/eager/execute.py", line 53 in quick_execute\n'
        '  File "/home/ada/train.py", line 7 in step\n  File "/home/ada/train.py", line 12 in <module>\n'
    )
    location = diagnose(died(said, "SIGSEGV")).diagnoses[0].location
    assert location is not None
    assert (location.file, location.line, location.function) == ("/home/ada/train.py", 7, "step")


WAITING = (
    "I0000 00:00:1 42 coordination_service.cc:637] Waiting for 1/2 tasks to connect.\n"
    "I0000 00:00:1 42 coordination_service.cc:639] Example stragglers:\n/job:worker/replica:0/task:1\n"
)


def hangs(said: str) -> Crash:
    stack = (
        Frame(kind="native", function="syscall", library="/lib/libc.so.6"),
        Frame(kind="python", function="main", file="/home/ada/train.py", line=3),
    )
    return Crash(
        outcome=Outcome(kind="timeout", signal="SIGKILL"),
        method="agent",
        pid=42,
        seconds=60.0,
        activity=Activity(limit=60.0, seconds=5.0, cpu=0.01, read=0, written=0),
        threads=(Thread(id=42, frames=stack),),
        output=Output(stderr=said),
    )


def test_tasks_that_did_not_come() -> None:
    found = first(hangs(WAITING))
    assert found.cause == "hang"
    assert "/job:worker/replica:0/task:1" in found.title
    assert any("TF_CONFIG" in fix.title + fix.detail for fix in found.fixes)
    came = f"{WAITING}I0 1 c.cc:1] /job:worker/replica:0/task:1 has connected to coordination service. Incarnation: 5\n"
    assert "tasks" not in diagnose(hangs(came)).diagnoses[0].title
