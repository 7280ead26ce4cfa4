"""Which op in flight is at fault: the innermost of the crashed thread, the one it worked for, or none."""

from __future__ import annotations

import pytest

from faultlens.inspection.tensorflow.ranking import rank
from faultlens.records.crash import Fault, Frame, Kernel, Thread

MAIN, POOL, OTHER = 1, 2, 3
FAULT = Fault(signal="SIGSEGV", code="SEGV_MAPERR", thread=POOL)


def op(name: str, thread: int, node: str | None = None, kernel_class: str | None = None) -> Kernel:
    return Kernel(op=name, node=node or name, thread=thread, kernel_class=kernel_class)


def thread(number: int, *functions: str, crashed: bool = False, launched: bool = False) -> Thread:
    frames = tuple(Frame(kind="native", function=function) for function in functions)
    return Thread(id=number, frames=frames, crashed=crashed, launched=launched)


WAITING = thread(MAIN, "syscall", "absl::Notification::WaitForNotification() const", launched=True)
CRASHED = thread(POOL, "memcpy", "tensorflow::GatherOp<int>::Compute(…)", crashed=True)


def at_fault(*kernels: Kernel, threads: tuple[Thread, ...] = (CRASHED, WAITING), **options: object) -> Kernel | None:
    ranked = rank(kernels, threads, **{"fault": FAULT, **options})  # type: ignore[arg-type]
    guilty = [kernel for kernel in ranked if kernel.at_fault]
    assert sorted(kernel.node for kernel in ranked) == sorted(kernel.node for kernel in kernels)
    assert guilty in ([], list(ranked[:1]))
    return guilty[0] if guilty else None


def test_the_innermost_op_of_the_crashed_thread() -> None:
    inner, outer, elsewhere = op("Gather", POOL), op("Fancy", POOL), op("MatMul", OTHER)
    ranked = rank((inner, outer, elsewhere), (CRASHED, WAITING), FAULT)
    assert [(kernel.op, kernel.at_fault) for kernel in ranked] == [
        ("Gather", True),
        ("Fancy", False),
        ("MatMul", False),
    ]


@pytest.mark.parametrize("carrier", ["StatefulPartitionedCall", "IteratorGetNext", "EagerPyFunc", "While", "XlaLaunch"])
def test_an_op_that_only_runs_others_is_not_at_fault(carrier: str) -> None:
    assert at_fault(op(carrier, POOL), op("MatMul", OTHER)) is None
    ranked = rank((op(carrier, POOL), op("Gather", POOL)), (CRASHED,), FAULT)
    assert [kernel.op for kernel in ranked] == ["Gather", carrier], "they come behind those they run"


def test_a_function_of_the_program_that_xla_runs_is_not_at_fault() -> None:
    function = op("__inference_step_12", POOL, kernel_class="tensorflow::XlaLocalLaunchBase")
    assert at_fault(function) is None


def test_the_op_named_on_the_stack_of_the_crashed_thread() -> None:
    share = thread(
        POOL, "std::_Function_handler<void (long), a::FillOp<float>::Compute(Context*)::{lambda(long)#1}>", crashed=True
    )
    fill = op("Fill", MAIN, kernel_class="a::FillOp<float>")
    other = op("Sum", OTHER, kernel_class="a::ReductionOp<float>")
    guilty = at_fault(other, fill, threads=(share, WAITING))
    assert guilty is not None
    assert guilty.op == "Fill"


def test_the_op_that_the_crashed_thread_worked_for() -> None:
    share = thread(POOL, "Eigen::internal::gebp_kernel<float>::operator()", crashed=True)
    product, sum_of_all = op("MatMul", MAIN), op("Sum", OTHER)
    guilty = at_fault(sum_of_all, product, threads=(share, WAITING), helped=(product,))
    assert guilty is not None
    assert guilty.op == "MatMul"
    assert at_fault(sum_of_all, product, threads=(share, WAITING)) is None
    assert at_fault(sum_of_all, product, threads=(share, WAITING), helped=(product, sum_of_all)) is None


def test_a_crash_of_the_programs_own_code_has_no_op_at_fault() -> None:
    own = thread(MAIN, "read_past_the_end", "ffi_call", crashed=True, launched=True)
    assert at_fault(op("MatMul", OTHER), threads=(own, thread(OTHER, "Compute"))) is None


def test_a_signal_from_outside_has_no_op_at_fault() -> None:
    sent = Fault(signal="SIGABRT", code="SI_USER", thread=POOL, sender_pid=999)
    assert at_fault(op("Gather", POOL), fault=sent) is None
    raised = Fault(signal="SIGABRT", code="SI_USER", thread=POOL, sender_pid=MAIN)
    assert at_fault(op("Gather", POOL), fault=raised) is not None


def test_a_hang_is_about_the_only_op_that_the_program_waits_for() -> None:
    blocked = thread(OTHER, "pthread_mutex_lock", "LockedOp::Compute(…)")
    locked, call = op("Locked", OTHER), op("PartitionedCall", MAIN)
    guilty = at_fault(locked, call, threads=(WAITING, blocked), fault=None)
    assert guilty is not None
    assert guilty.op == "Locked"
    assert at_fault(locked, op("MatMul", POOL), threads=(WAITING, blocked), fault=None) is None
    busy = thread(MAIN, "lock_PyThread_acquire_lock", launched=True)
    assert at_fault(locked, threads=(busy, blocked), fault=None) is None, "the program waits for something else"


def test_the_same_node_on_several_threads_is_one_op() -> None:
    guilty = at_fault(op("Locked", OTHER), op("Locked", POOL), threads=(WAITING,), fault=None)
    assert guilty is not None
