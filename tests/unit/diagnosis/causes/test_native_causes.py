"""Bugs in custom ops, extensions and ctypes libraries, told apart by their facts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.rank import diagnose
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Address, Crash, Frame, Hunt, Library, Outcome, Output
from recorded_crashes import causes, first, load


def without_custom_libraries(crash: Crash) -> Crash:
    """The same end in a program that loads nothing of its own."""
    installed = tuple(library for library in crash.libraries if "/project/" not in library.path)
    return replace(crash, libraries=installed, sources={})


def in_tensorflow(crash: Crash) -> Crash:
    """The same end, with TensorFlow's own code in the place of the custom one."""
    library = "/home/ada/venv/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2"
    threads = tuple(
        replace(
            thread,
            frames=tuple(
                replace(frame, library=library) if "/project/" in (frame.library or "") else frame
                for frame in thread.frames
            ),
        )
        for thread in crash.threads
    )
    return replace(without_custom_libraries(crash), threads=threads, exceptions=())


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("op_null_deref", "native-null-dereference"),
        ("ctypes_null_inside", "native-null-dereference"),
        ("op_unchecked_index", "native-out-of-bounds"),
        ("ctypes_past_the_end", "native-out-of-bounds"),
        ("vector_assertion", "native-out-of-bounds"),
        ("op_heap_overflow", "native-heap-overflow"),
        ("heap_damaged_gc", "native-heap-overflow"),
        ("freed_list", "native-use-after-free"),
        ("freed_unmapped", "native-use-after-free"),
        ("op_double_free", "native-double-free"),
        ("op_int_div_zero", "native-division-by-zero"),
        ("op_exception_eager", "native-uncaught-exception"),
        ("exception_noexcept", "native-uncaught-exception"),
        ("op_unaligned_avx", "native-unaligned-access"),
        ("op_fortify", "native-stack-smash"),
        ("smashed_return", "native-stack-smash"),
        ("race_in_vector", "native-data-race"),
        ("callback_collected", "native-bad-function-pointer"),
        ("callback_null", "native-bad-function-pointer"),
        ("op_wrong_dtype", "native-wrong-dtype"),
        ("ext_refcount", "native-refcount"),
        ("none_deallocated", "native-refcount"),
        ("gil_released", "native-without-gil"),
        ("gil_cdll_api", "native-without-gil"),
        ("op_output_missing", "native-output-not-set"),
        ("exit_thread_terminate", "native-thread-at-exit"),
        ("exit_thread_running", "native-thread-at-exit"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("op_null_deref", "ScaleByTable"),
        ("op_unchecked_index", "MyGather"),
        ("op_exception_eager", "ParseTable2"),
        ("op_heap_overflow", "PadRight"),  # long gone from the stack: the sources tell
    ],
)
def test_names_the_op(name: str, op: str) -> None:
    assert first(load(name)).op == op


def test_heap_damage_points_to_the_line_that_calls_the_custom_op() -> None:
    location = first(load("op_heap_overflow")).location
    assert location is not None
    assert location.line == 6


@pytest.mark.parametrize(
    "name",
    [
        "op_null_deref", "op_unchecked_index", "op_double_free", "op_int_div_zero", "op_unaligned_avx", "op_fortify",
        "op_wrong_dtype", "smashed_return", "exception_noexcept", "race_in_vector", "freed_list", "freed_unmapped",
    ],
)  # fmt: skip
def test_tensorflow_s_own_code_is_not_custom(name: str) -> None:
    assert not [cause for cause in causes(in_tensorflow(load(name))) if cause.startswith("native-")]


@pytest.mark.parametrize("name", ["op_heap_overflow", "heap_damaged_gc", "op_double_free", "ext_refcount"])
def test_heap_damage_without_custom_code_is_not_blamed_on_it(name: str) -> None:
    crash = in_tensorflow(load(name))
    assert not [cause for cause in causes(crash) if cause.startswith("native-")]


def test_a_thread_that_dies_in_the_middle_of_the_work_is_not_at_exit() -> None:
    assert first(replace(load("exit_thread_running"), exiting=False)).cause != "native-thread-at-exit"


def test_an_exception_that_was_caught_long_ago_is_not_the_end() -> None:
    crash = load("op_exception_eager")
    old = tuple(replace(exception, seconds_before=60.0) for exception in crash.exceptions)
    threads = tuple(replace(thread, frames=load("op_null_deref").threads[0].frames) for thread in crash.threads)
    assert "native-uncaught-exception" not in causes(replace(crash, exceptions=old, threads=threads))


def test_without_noted_exceptions_the_custom_op_at_work_is_named() -> None:
    diagnosis = first(replace(load("op_exception_eager"), exceptions=()))
    assert diagnosis.cause == "native-uncaught-exception"
    assert diagnosis.confidence < 0.9


def test_an_aligned_address_is_no_unaligned_access() -> None:
    crash = load("op_unaligned_avx")
    fault = crash.fault
    assert fault is not None
    assert fault.instruction is not None
    operand = fault.instruction.operands[0]
    instruction = replace(fault.instruction, operands=(replace(operand, address=Address(0x7000_0000_0040)),))
    changed = replace(crash, fault=replace(fault, instruction=instruction))
    assert "native-unaligned-access" not in causes(changed)


def test_other_checks_below_a_custom_op_are_not_about_types() -> None:
    crash = load("op_wrong_dtype")
    text = (crash.output.stderr or "").replace("dtype() == expected_dtype", "ok").replace("expected, got", "")
    assert "native-wrong-dtype" not in causes(replace(crash, output=Output(stderr=text)))


def test_with_the_gil_held_it_is_something_else() -> None:
    crash = load("gil_released")
    threads = tuple(replace(thread, holds_gil=True) if thread.crashed else thread for thread in crash.threads)
    assert "native-without-gil" not in causes(replace(crash, threads=threads))


def test_one_thread_alone_does_not_race() -> None:
    crash = load("race_in_vector")
    alone = tuple(replace(thread, launched=True) for thread in crash.threads if thread.crashed)
    assert first(replace(crash, threads=alone, sources={})).cause == "native-double-free"


def test_a_missing_output_of_an_op_of_tensorflows_own_is_an_exception() -> None:
    crash = load("op_output_missing")
    said = Output(
        stdout=crash.output.stdout, stderr=(crash.output.stderr or "").replace("node SkipOut", "node Reshape")
    )
    assert "native-output-not-set" not in causes(replace(crash, output=said, sources={}))
    assert first(replace(crash, sources={})).op == "SkipOut"  # TensorFlow has none of this name


def test_a_program_that_goes_on_after_a_missing_output_is_told_of_it() -> None:
    said = (
        "W0000 local_rendezvous.cc:412] aborting with status: INTERNAL: Missing 0-th output from {{node f/SkipOut_1}}"
    )
    went_on = Crash(outcome=Outcome(kind="ok", exit_code=0), method="status", output=Output(stderr=said))
    found = first(went_on)
    assert (found.cause, found.op) == ("native-output-not-set", "SkipOut")


def test_no_callback_in_the_sources_no_collected_callback() -> None:
    assert first(replace(load("callback_collected"), sources={})).cause != "native-bad-function-pointer"


def test_the_capturing_agent_is_nobody_s_custom_code() -> None:
    agent = "/home/ada/src/faultlens/capture/agent/libfaultlens_agent.so"
    crash = in_tensorflow(load("op_heap_overflow"))
    with_agent = replace(crash, libraries=(*crash.libraries, Library(path=agent, start=Address(0x7000_0000_0000))))
    assert "native-heap-overflow" not in causes(with_agent)


# ------------------------------------------------------------------------- damage that nobody saw being done


def damaged(text: str, **facts: object) -> Crash:
    """The same end with other words, and nothing in the sources."""
    return replace(load("memset_damaged_heap"), abort_message=text, sources={}, output=Output(), **facts)


@pytest.mark.parametrize(
    "words",
    [
        "malloc(): invalid size (unsorted)", "malloc(): corrupted top size", "malloc(): memory corruption",
        "malloc(): smallbin double linked list corrupted", "malloc(): unaligned tcache chunk detected",
        "corrupted size vs. prev_size while consolidating", "corrupted double-linked list", "free(): invalid pointer",
        "free(): invalid next size (fast)", "free(): too many chunks detected in tcache",
        "double free or corruption (out)", "double free or corruption (!prev)",
        "free(): double free detected in tcache 2", "munmap_chunk(): invalid pointer",
        "realloc(): invalid next size", "malloc_consolidate(): unaligned fastbin chunk detected",
        "tcache_thread_shutdown(): unaligned tcache chunk detected", "mremap_chunk(): invalid pointer",
        "memory clobbered past end of allocated block", "src/tcmalloc.cc:333] Attempt to free invalid pointer 0x10",
        "<jemalloc>: Corrupt redzone 1 byte after 0x10", "mimalloc: error: buffer overflow in heap block 0x10",
        "Fatal Python error: _PyMem_DebugRawFree: bad trailing pad byte",
    ],
)  # fmt: skip
def test_plain_heap_damage_is_called_so_and_hunted(words: str) -> None:
    found = first(damaged(words))
    assert found.cause in ("heap-corruption", "allocator-mismatch")
    if found.cause == "heap-corruption":
        assert "earlier" in found.title or "before" in found.title
        assert "memset_heap.py:9" in found.title
        assert found.fixes[0].detail == "faultlens run --hunt=all -- /usr/bin/python3 memset_heap.py"
    assert not any("MALLOC_CHECK_" in fix.detail for fix in found.fixes)


def test_where_it_was_noticed_is_not_where_it_was_done() -> None:
    found = first(load("memset_damaged_heap"))
    assert found.title.endswith("it was noticed at memset_heap.py:9, which is not where it was done")
    assert "a suspect: memset_heap.py:5, where nothing checks the bounds of memset" in [
        fact.fact for fact in found.evidence
    ]


def test_the_next_step_of_a_hunt_fences_more() -> None:
    words, libraries = "malloc(): invalid size (unsorted)", load("memset_damaged_heap").libraries
    tensorflow = Library(
        path="/venv/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2", start=Address(4096)
    )
    custom = Library(path="/home/ada/project/op.so", start=Address(8192))

    def advice(hunt: Hunt, *more: Library) -> str:
        return first(damaged(words, hunt=hunt, libraries=(*libraries, *more))).fixes[0].detail

    command = "-- /usr/bin/python3 memset_heap.py"
    assert advice(Hunt()) == f"faultlens run --hunt=all {command}"
    assert advice(Hunt(), tensorflow) == f"faultlens run --hunt=tensors {command}"
    assert advice(Hunt(watched="tensors"), tensorflow) == f"faultlens run --hunt=all {command}"
    assert advice(Hunt(watched="all"), custom) == "faultlens op sanitize op.so -- python …"
    assert "another allocator" in advice(Hunt(problem="another allocator comes before it"))


def test_the_first_hunt_fences_all_of_a_short_program() -> None:
    words, tensorflow = "malloc(): invalid size (unsorted)", load("op_heap_overflow").libraries
    crash = damaged(words)

    def advice(**changed: object) -> str:
        return first(replace(crash, **changed)).fixes[0].detail

    assert advice(seconds=2.0).startswith("faultlens run --hunt=all -- ")
    assert advice(seconds=900.0).startswith("faultlens run --hunt -- ")
    assert advice(seconds=2.0, libraries=tensorflow).startswith("faultlens run --hunt -- ")
    hidden = replace(crash.program, command=("python", "train.py", "--key", "<redacted>"))
    assert advice(seconds=2.0, program=hidden) == "faultlens run --hunt=all …"


def test_a_library_that_is_only_loaded_is_one_suspect_among_others() -> None:
    """Where the program itself makes views of any shape, or uses what it has released."""
    crash = replace(load("as_strided_damaged_heap"), libraries=load("op_heap_overflow").libraries)
    found = diagnose(crash).diagnoses
    assert found[0].cause == "view-out-of-bounds"
    assert all(each.confidence <= 0.5 for each in found if each.cause.startswith("native-"))
    native = next(each for each in found if each.cause == "native-heap-overflow")
    assert "or by as_strided at view_write.py:" in native.title
    released = {path: "".join(_RELEASED) for path in crash.sources}
    found = diagnose(replace(crash, sources=released)).diagnoses
    assert [each.cause for each in found[:2]] == ["dangling-buffer", "native-heap-overflow"]
    assert all(each.confidence <= 0.5 for each in found)
    assert found[0].fixes[0].detail.startswith("faultlens run --hunt")


_RELEASED = (
    "import ctypes, numpy as np\n",
    "lib = ctypes.CDLL('libuser.so')\n",
    "p = lib.mk(256)\n",
    "a = np.ctypeslib.as_array(ctypes.cast(p, ctypes.POINTER(ctypes.c_double)), (32,))\n",
    "lib.rel(p)\n",
    "a[:] = 7\n",
)


@pytest.mark.parametrize(
    "name", ["op_int_div_zero", "exception_noexcept", "gil_released", "callback_null", "gil_cdll_api"]
)
def test_address_sanitizer_is_advised_for_memory_errors_only(name: str) -> None:
    assert not any("sanitize" in fix.title for fix in first(load(name)).fixes)


def test_address_sanitizer_is_not_advised_where_the_line_is_known() -> None:
    crash = load("ctypes_past_the_end")
    assert not any("sanitize" in fix.title for fix in first(crash).fixes)
    bare = tuple(
        replace(each, frames=tuple(replace(frame, file=None, line=None) for frame in each.frames))
        for each in crash.threads
    )
    assert any("sanitize" in fix.title for fix in first(replace(crash, threads=bare)).fixes)
    assert any("sanitize" in fix.title + fix.detail for fix in first(load("op_double_free")).fixes)


@pytest.mark.parametrize(
    ("name", "is_op"),
    [("op_null_deref", True), ("op_unchecked_index", True), ("op_exception_eager", True)]
    + [(name, False) for name in ("ctypes_null_inside", "ctypes_past_the_end", "exception_noexcept")],
)
def test_only_ops_are_told_to_report_errors_as_ops_do(name: str, is_op: bool) -> None:
    told = " ".join(f"{fix.title} {fix.detail}" for fix in first(load(name)).fixes)
    assert ("OP_REQUIRES" in told or "ctx->SetStatus" in told) is is_op


def test_without_an_extension_none_is_accused_of_a_spoiled_count() -> None:
    crash = without_custom_libraries(load("ext_refcount"))
    code = "import ctypes\n\n\ndef release(o):\n    ctypes.pythonapi.Py_DecRef(ctypes.py_object(o))\n"
    found = first(replace(crash, sources={"/home/ada/project/main.py": code}))
    assert found.cause == "native-refcount"
    assert found.title.endswith("most likely by Py_DecRef at main.py:5")
    assert found.location is not None and found.location.line == 5
    said = first(without_custom_libraries(load("none_deallocated")))
    for each in (found, said):
        told = " ".join((each.title, *(fact.fact for fact in each.evidence), *(fix.title for fix in each.fixes)))
        assert "an extension" not in told and "rebuild" not in told


def test_a_thread_that_nobody_joined_is_told_without_a_shutdown() -> None:
    crash = load("exit_thread_terminate")
    library = "/home/ada/project/lib.so"
    names = ("std::__terminate()", "std::thread::~thread()", "prefetch")
    frames = tuple(Frame(kind="native", function=name, library=library, file="lib.cc", line=3) for name in names)
    dying = next(each for each in crash.threads if each.crashed)
    aborting = tuple(frame for frame in dying.frames[:6] if owner_of(frame) == "system")
    threads = (replace(dying, frames=(*aborting, *frames)),)
    found = first(replace(crash, threads=threads, exiting=False))
    assert found.cause == "native-thread-at-exit"
    assert found.title.startswith("prefetch of lib.so (lib.cc:3) destroyed a std::thread")
    told = " ".join((found.title, *(fact.fact for fact in found.evidence), *(fix.title for fix in found.fixes)))
    assert "shut down" not in told and "exits" not in told and "__terminate" not in told
    assert "shut down" in first(crash).title


def test_a_cause_that_says_who_did_it_says_more() -> None:
    assert "heap-corruption" not in causes(load("op_heap_overflow"))
    assert first(load("op_heap_overflow")).fixes[0].detail.startswith("faultlens run --hunt")
    assert "heap-corruption" not in causes(load("as_strided_damaged_heap"))


def test_an_object_that_holds_data_was_overwritten() -> None:
    assert "heap-corruption" not in causes(load("memset_past_fence"))
    assert first(replace(load("heap_damaged_gc"), libraries=(), sources={})).cause == "heap-corruption"


# -------------------------------------------------------------------------------------- threads and containers


def test_a_kernel_that_threads_share_did_not_miss_its_buffers() -> None:
    crash = load("custom_op_raced")  # seen alone in Compute, in the nodes of its unordered_map
    found = first(crash)
    assert (found.cause, found.op) == ("native-data-race", "CountTokens")
    assert found.title.startswith("CountTokensOp::Compute of libkernel.so")
    assert "mutex" in found.fixes[0].title + found.fixes[0].detail


def test_memory_that_another_thread_frees() -> None:
    crash = load("ring_grown_by_thread")
    found = first(crash)
    assert found.cause == "native-data-race" and "another thread calls ring_grow" in found.title
    alone = {path: text.replace("threading.Thread", "object") for path, text in crash.sources.items()}
    assert first(replace(crash, sources=alone)).cause != "native-data-race"
