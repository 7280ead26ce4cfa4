"""Two deaths are the same when the signal, the innermost native function and the failed check are."""

from __future__ import annotations

from typing import Any

import pytest

from faultlens.diagnosis.signature import Signature, same_death, signature_of, still_the_same
from faultlens.records.crash import Address, CppException, Crash, Fault, Frame, Mapping, Outcome, Output, Thread
from faultlens.repro.reproduce import wanted_death
from faultlens.repro.task import NotReproducedError

TENSORFLOW = "/venv/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2"
PYTHON = "/usr/lib/libpython3.11.so.1.0"
CHECK = "F0000 00:00:1.0 42 tensor.cc:1120] Check failed: limit <= dim0_size (3 vs. 2)\n"


def native(function: str, library: str = TENSORFLOW, offset: int = 0x10) -> Frame:
    return Frame(kind="native", function=function, library=library, offset=Address(offset))


def died(*frames: Frame, signal: str = "SIGABRT", stderr: str = "", **facts: Any) -> Crash:
    code = "SI_TKILL" if signal == "SIGABRT" else "SEGV_MAPERR"
    dying = (native("abort", "/lib/libc.so.6"),) if signal == "SIGABRT" else ()
    fault = Fault(
        signal=signal, code=code, thread=7, registers=facts.pop("registers", {}), address=facts.pop("at", None)
    )
    return Crash(
        outcome=Outcome(kind="signal", signal=signal),
        method="agent",
        fault=fault,
        threads=(Thread(id=7, crashed=True, frames=(*dying, *frames)),),
        output=Output(stderr=stderr),
        **facts,
    )


SLICE = native("tensorflow::Tensor::Slice(long, long) const")
COMPUTE = native("tensorflow::BlockLSTMGradOp<float>::Compute(tensorflow::OpKernelContext*)", offset=0x50)


def test_a_failed_check() -> None:
    found = signature_of(died(SLICE, COMPUTE, stderr=CHECK))
    assert found.function == "tensorflow::Tensor::Slice"
    assert found.check == "tensor.cc:1120"
    assert str(found) == "SIGABRT in tensorflow::Tensor::Slice (tensor.cc:1120)"
    elsewhere = signature_of(died(SLICE, COMPUTE, stderr=CHECK.replace("1120", "99")))
    assert same_death(found, found)
    assert not same_death(found, elsewhere)
    assert not same_death(found, signature_of(died(COMPUTE, stderr=CHECK)))
    assert not same_death(found, signature_of(died(SLICE, signal="SIGSEGV")))


def test_the_c_runtime_and_code_without_a_name_do_not_count() -> None:
    memcpy = native("__memmove_avx_unaligned_erms", "/lib/x86_64-linux-gnu/libc.so.6")
    machine_code = Frame(kind="native", function="??", address=Address(0x7F0000))
    assert signature_of(died(memcpy, machine_code, COMPUTE, signal="SIGSEGV")).function == (
        "tensorflow::BlockLSTMGradOp<…>::Compute"
    )


def test_the_same_code_under_another_name() -> None:
    inlined, outer = native("Lookup", offset=0x99), native("TableOp::Compute", offset=0x99)
    assert same_death(signature_of(died(inlined)), signature_of(died(outer)))


def test_a_lambda_is_named_by_the_function_it_is_in() -> None:
    name = "std::_Function_handler<void (long), tensorflow::FastParse(int, int)::$_2>::_M_invoke(std::_Any_data const&)"
    other = name.replace("FastParse", "SlowParse")
    assert str(signature_of(died(native(name)))) == "SIGABRT in a lambda of tensorflow::FastParse"
    assert not same_death(signature_of(died(native(name))), signature_of(died(native(other, offset=0x20))))


def test_where_a_damaged_heap_is_noticed_is_chance() -> None:
    first = died(native("Op::Compute"), stderr="malloc(): corrupted top size\n")
    second = died(native("PyObject_Malloc", PYTHON), stderr="corrupted size vs. prev_size\n")
    freed = died(native("Op::Compute"), stderr="free(): double free detected in tcache 2\n")
    assert same_death(signature_of(first), signature_of(second))
    assert not same_death(signature_of(first), signature_of(freed))
    assert str(signature_of(first)) == "SIGABRT at a damaged heap (heap overflow)"


def test_an_exception_that_escaped_is_told_by_its_type() -> None:
    def thrown(kind: str) -> Signature:
        exception = CppException(type=kind, thread=7, seconds_before=0.01)
        return signature_of(died(native("PyErr_Occurred", PYTHON), signal="SIGSEGV", exceptions=(exception,)))

    assert not same_death(thrown("std::bad_alloc"), thrown("std::out_of_range"))
    assert str(thrown("std::bad_alloc")) == "SIGSEGV in PyErr_Occurred after std::bad_alloc was thrown"


def test_any_function_of_a_recursion() -> None:
    stack = Mapping(start=Address(0x7F0000010000), end=Address(0x7F0000020000), permissions="rw-p")
    one, two = native("walk", offset=1), native("visit", offset=2)
    where: dict[str, Any] = {
        "registers": {"rsp": Address(0x7F000000FF00)},
        "at": Address(0x7F000000FEF0),
        "mappings": (stack,),
    }
    first = signature_of(died(*[one, two] * 5, signal="SIGSEGV", **where))
    second = signature_of(died(*[two, one] * 5, signal="SIGSEGV", **where))
    assert first.function != second.function
    assert same_death(first, second)


def test_a_shrinking_program_must_not_slip_to_another_op() -> None:
    first = signature_of(died(SLICE, COMPUTE, stderr=CHECK))
    other = signature_of(
        died(SLICE, native("tensorflow::SplitOp<float>::Compute(tensorflow::OpKernelContext*)"), stderr=CHECK)
    )
    assert same_death(first, other)
    assert not still_the_same(first, other)


def test_python_exceptions_by_type_and_op() -> None:
    def raised(line: str) -> Signature:
        text = f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n{line}\n'
        outcome = Outcome(kind="exception", exit_code=1)
        return signature_of(Crash(outcome=outcome, method="status", output=Output(stderr=text)))

    reshape = raised("tensorflow.errors.InvalidArgumentError: no [Op:Reshape]")
    assert str(reshape) == "InvalidArgumentError of Reshape"
    assert same_death(reshape, raised("InvalidArgumentError: other text [Op:Reshape]"))
    assert not same_death(reshape, raised("InvalidArgumentError: no [Op:Split]"))
    assert not same_death(reshape, signature_of(died(SLICE)))


def test_a_program_that_lives_is_never_the_same() -> None:
    alive = signature_of(Crash(outcome=Outcome(kind="ok", exit_code=0), method="status"))
    assert not same_death(signature_of(died()), alive)
    assert not same_death(alive, alive)


@pytest.mark.parametrize(
    ("crash", "sentence"),
    [
        (Crash(outcome=Outcome(kind="ok", exit_code=0), method="status"), "ended normally"),
        (Crash(outcome=Outcome(kind="exit", exit_code=3), method="status"), "with exit code 3"),
        (Crash(outcome=Outcome(kind="hang"), method="agent"), "hangs"),
        (Crash(outcome=Outcome(kind="signal", signal="SIGKILL"), method="status"), "killed"),
    ],
)
def test_ends_that_no_script_brings_about(crash: Crash, sentence: str) -> None:
    with pytest.raises(NotReproducedError, match=sentence):
        wanted_death(crash)


def test_a_signal_that_was_sent() -> None:
    fault = Fault(signal="SIGSEGV", code="SI_USER", thread=7, sender_pid=99)
    crash = Crash(outcome=Outcome(kind="signal", signal="SIGSEGV"), method="agent", pid=7, fault=fault)
    with pytest.raises(NotReproducedError, match="sent by another process"):
        wanted_death(crash)
