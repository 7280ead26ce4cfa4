"""Crashes of TensorFlow's own code: which op, why, and what is known of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.rank import diagnose
from faultlens.knowledge import known_crashes
from faultlens.records.crash import (
    Address,
    CppException,
    Crash,
    Fault,
    Frame,
    Library,
    Outcome,
    Output,
    Package,
    Thread,
)
from recorded_crashes import causes, first, load


def fault_of(crash: Crash) -> Fault:
    assert crash.fault is not None
    return crash.fault


def test_a_worker_that_made_the_program_fail() -> None:
    crash = load("op_child_lstm")  # the program itself went on
    assert diagnose(crash).diagnoses == ()
    failed = first(replace(crash, outcome=Outcome(kind="exit", exit_code=1)))
    assert (failed.cause, failed.op) == ("op-check-failed", "BlockLSTM")


@pytest.mark.parametrize(
    ("name", "cause", "op"),
    [
        ("block_lstm_grad_seq_len", "op-check-failed", "BlockLSTMGradV2"),  # eager
        ("keras_fit_block_lstm", "op-check-failed", "BlockLSTM"),  # on a thread of TensorFlow's, below model.fit
        ("op_thread_all", "op-check-failed", "All"),  # below a thread of the program's
        ("parallel_concat_overflow", "op-check-failed", "ParallelConcat"),  # in a pass that rewrites the graph
        ("xla_tensor_list_overflow", "op-check-failed", "EmptyTensorList"),  # while it is translated for XLA
        ("threading_negative_parallelism", "op-check-failed", "set_intra_op_parallelism_threads"),  # no op at all
        ("queue_fifo_garbage_dtypes", "op-null-dereference", "FIFOQueueV2"),  # while arguments are read
        ("dataservice_dispatcher_nostart", "op-null-dereference", "DispatchGrpcDataServer"),  # in a destructor
        ("upper_bound_rank_mismatch", "op-null-dereference", "UpperBound"),
        ("op_crop", "op-out-of-bounds", "CropAndResizeGradImage"),
        ("op_ctcloss", "op-out-of-bounds", "CTCLoss"),  # glibc found the damage
        ("depth_to_space_block_overflow", "op-division-by-zero", "DepthToSpace"),
        ("op_parse_seq_map", "op-division-by-zero", "ParseSequenceExample"),  # in tf.data's map
        ("xla_rot90_cumsum", "compiler-bug", "augment_and_integrate (image.rot90, experimental.numpy.cumsum)"),
        ("xla_range_division", "compiler-bug", "steps (range)"),
    ],
)
def test_named_first(name: str, cause: str, op: str) -> None:
    diagnosis = first(load(name))
    assert (diagnosis.cause, diagnosis.op) == (cause, op)


# ------------------------------------------------------------------------------------------- failed checks


def test_the_title_puts_the_check_into_words_and_the_evidence_has_its_text() -> None:
    diagnosis = first(load("block_lstm_grad_seq_len"))
    assert "is 3 and may be at most 2" in diagnosis.title
    assert "limit <= dim0_size (3 vs. 2)" in diagnosis.evidence[0].fact


@pytest.mark.parametrize("name", ["threads_pids_max", "dlpack_misaligned_numpy", "op_wrong_dtype", "op_double_free"])
def test_checks_and_aborts_with_another_reason(name: str) -> None:
    assert first(load(name)).cause != "op-check-failed"


def test_frames_tell_of_a_check_whose_message_was_lost() -> None:
    crash = load("block_lstm_grad_seq_len")
    diagnosis = first(replace(crash, output=replace(crash.output, stderr="")))
    assert (diagnosis.cause, diagnosis.op) == ("op-check-failed", "BlockLSTMGradV2")


def test_an_abort_of_others_is_no_check() -> None:
    for name in ("op_ctcloss", "op_double_free", "self_abort"):
        assert "op-check-failed" not in causes(load(name))


# ------------------------------------------------------------------------------------- addresses and objects


def test_null_and_behind_a_buffer_are_told_apart() -> None:
    crash = load("op_crop")
    assert "op-null-dereference" not in causes(crash)
    at_null = replace(crash, fault=replace(fault_of(crash), address=Address(0x10)))
    assert causes(at_null)[0] == "op-null-dereference"
    assert "op-out-of-bounds" not in causes(at_null)


def test_an_index_into_what_is_empty_is_out_of_bounds() -> None:
    crash = load("ragged_splits_of_nothing")  # splits up to 9, no values; their data are said to lie at null
    found = first(crash)
    assert (found.cause, found.op) == ("op-out-of-bounds", "RaggedTensorToTensor")
    assert "it ends at 9, and `values` has 0 values" in found.title
    unread = tuple(replace(kernel, inputs=()) for kernel in crash.kernels)
    assert first(replace(crash, kernels=unread)).cause == "op-null-dereference"


def test_what_is_empty_is_told_of_a_null_pointer() -> None:
    found = first(load("sdca_empty_features"))
    assert (found.cause, found.op) == ("op-null-dereference", "SdcaOptimizer")
    assert "`dense_features[0]` is empty" in found.title


@pytest.mark.parametrize(("base", "index"), [(0, 7), (0x40, 0), (0, 2**64 - 1)])
def test_an_index_beside_null_is_not_surely_a_null_pointer(base: int, index: int) -> None:
    crash = load("sdca_empty_features")
    fault = fault_of(crash)
    assert fault.instruction is not None
    (used, *_) = fault.instruction.operands
    address = Address((base + 4 * index) % 2**64)
    registers = dict(zip(used.registers, (Address(base), Address(index)), strict=True))
    operand = replace(used, registers=registers, address=address)
    instruction = replace(fault.instruction, operands=(operand,))
    for diagnosis in diagnose(replace(crash, fault=replace(fault, address=address, instruction=instruction))).diagnoses:
        assert diagnosis.confidence <= 0.6


def test_far_from_null_is_said_to_be_ruled_out() -> None:
    assert "op-null-dereference" in {item.cause for item in diagnose(load("op_crop")).ruled_out}


@pytest.mark.parametrize("name", ["dlpack_dangling", "memmap_truncated_file", "op_unchecked_index", "op_null_deref"])
def test_memory_that_is_gone_and_code_of_others(name: str) -> None:
    assert not first(load(name)).cause.startswith("op-")


def test_damage_of_the_heap_is_not_blamed_on_tensorflow_next_to_custom_code() -> None:
    assert first(load("op_heap_overflow")).cause != "op-out-of-bounds"


def test_a_division_in_custom_code_is_not_tensorflows() -> None:
    assert first(load("op_int_div_zero")).cause == "native-division-by-zero"


def test_the_divisor_is_shown() -> None:
    assert any("is 0x0" in item.fact for item in first(load("depth_to_space_block_overflow")).evidence)


# --------------------------------------------------------------------------------------------- exceptions


def test_an_exception_that_escapes_without_the_gil() -> None:
    """Recorded with std::bad_alloc; the type is changed, because nothing else in reach throws another one."""
    crash = load("tensor_array_v3_huge")
    assert causes(crash) == ["oversized-allocation", "op-uncaught-exception"]
    thrown = replace(crash.exceptions[0], type="std::out_of_range", message="vector::_M_range_check")
    diagnosis = first(replace(crash, exceptions=(thrown,)))
    assert (diagnosis.cause, diagnosis.op) == ("op-uncaught-exception", "TensorArrayV3")
    assert "out_of_range" in diagnosis.title


def test_an_exception_of_a_custom_op_is_not_tensorflows() -> None:
    assert "op-uncaught-exception" not in causes(load("op_exception_eager"))


def test_an_exception_that_was_thrown_long_before_is_not_the_cause() -> None:
    crash = load("queue_fifo_garbage_dtypes")
    assert crash.crashed_thread is not None
    old = CppException(type="std::runtime_error", thread=crash.crashed_thread.id, seconds_before=60)
    assert "op-uncaught-exception" not in causes(replace(crash, exceptions=(old,)))


# ----------------------------------------------------------------------------------------------- compilers


def test_code_without_a_file_is_only_xlas_when_xla_called_it() -> None:
    crash = load("xla_rot90_cumsum")
    thread = crash.crashed_thread
    assert thread is not None
    frames = tuple(frame for frame in thread.frames if "xla::" not in frame.function)
    others = tuple(other for other in crash.threads if other is not thread)
    without: tuple[Thread, ...] = (replace(thread, frames=frames), *others)
    assert "compiler-bug" not in causes(replace(crash, threads=without))


# ------------------------------------------------------------------------------------------- known crashes


def with_tensorflow(crash: Crash, version: str) -> Crash:
    python = crash.program.python
    assert python is not None
    packages = (Package(name="tensorflow_cpu", version=version),)
    return replace(crash, program=replace(crash.program, python=replace(python, packages=packages)))


def test_a_known_crash_is_named_with_the_release_that_mends_it() -> None:
    diagnosis = first(with_tensorflow(load("upper_bound_rank_mismatch"), "2.12.0"))
    assert any("issue 59406" in item.fact for item in diagnosis.evidence)
    assert any("upgrade TensorFlow to 2.15.1" in fix.title for fix in diagnosis.fixes)


def test_a_release_with_the_fix_is_not_accused() -> None:
    diagnosis = first(with_tensorflow(load("upper_bound_rank_mismatch"), "2.18.0"))
    assert not any("known to crash" in item.fact for item in diagnosis.evidence)
    assert not any("upgrade" in fix.title for fix in diagnosis.fixes)


def test_tensorflow_is_not_blamed_for_an_object_that_a_library_may_have_overwritten() -> None:
    crash = load("dataservice_dispatcher_nostart")
    own = Library(path="/home/ada/project/lib2.so", start=Address(1 << 40))
    code = "import ctypes\nlib = ctypes.CDLL('./lib2.so')\nbuf = (ctypes.c_int * 1000)()\nlib.start_async(buf)\n"
    shared = replace(crash, libraries=(*crash.libraries, own), sources={"/home/ada/project/main.py": code})
    assert first(crash).cause == "op-null-dereference"
    found = first(shared)
    assert found.cause == "native-heap-overflow" and found.confidence <= 0.5
    assert "lib2.so" in found.title


# ------------------------------------------------------------------------------- heap damage that others find


def _finding_damage(name: str) -> Crash:
    crash = load(name)
    said = "corrupted double-linked list"
    fault = replace(fault_of(crash), signal="SIGABRT", code="SI_TKILL", address=None, access=None, instruction=None)
    outcome = replace(crash.outcome, signal="SIGABRT")
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    names = ("abort", "__libc_message", "malloc_printerr", "unlink_chunk", "_int_malloc", "malloc")
    giving_up = tuple(Frame(kind="native", function=name, library=libc) for name in names)
    threads = tuple(
        replace(each, frames=(*giving_up, *each.frames)) if each.crashed else each for each in crash.threads
    )
    output = Output(stderr=f"{said}\n")
    return replace(crash, threads=threads, fault=fault, outcome=outcome, output=output, abort_message=said)


@pytest.mark.parametrize("name", ["xla_range_division", "op_crop", "sdca_empty_features"])
def test_who_finds_the_heap_damaged_did_not_do_it(name: str) -> None:
    crash = replace(_finding_damage(name), kernels=())
    found = first(crash)
    if not known_crashes(found.op or "", "2.21.0"):
        assert found.cause == "heap-corruption"
    assert found.fixes[0].title.startswith("catch the damage when it is done")
    assert not any("MALLOC_CHECK_" in fix.title + fix.detail for fix in found.fixes)


def test_llvm_of_others_is_not_tensorflow_s() -> None:
    crash = _finding_damage("xla_range_division")
    said = replace(crash, output=Output(stderr="LLVM ERROR: Symbol not found: __svml_exp8\n"), abort_message=None)
    assert "compiler-bug" in causes(said)
    numba = "/home/ada/venv/lib/python3.11/site-packages/llvmlite/binding/libllvmlite.so"
    threads = tuple(
        replace(each, frames=tuple(_in_library(frame, numba) for frame in each.frames)) for each in said.threads
    )
    assert "compiler-bug" not in causes(replace(said, threads=threads))


def _in_library(frame: Frame, library: str) -> Frame:
    own = frame.kind == "native" and "libc" not in (frame.library or "")
    return replace(frame, library=library) if own else frame
