"""Crash programs that are made from calls (benchmarks/corpus_variants.py): surroundings, truth, and the two parts."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CALL = "tf.raw_ops.LRNGrad(input_grads=tf.ones([2, 2]), bias=1.0)"
CHECK = "F0000 00:00:1795007340.766272    5829 tensor_shape.cc:362] Check failed: d < dims() (1 vs. 0) "
GDB = """
Thread 5 "python" received signal SIGSEGV, Segmentation fault.
0x00007fffd in tensorflow::Op () from libtensorflow_cc.so.2
$1 = {address}
$2 = {code}
$3 = 0x7fffffffd000
=> 0x7fffd <op+12>:\tmov    (%rax,%rcx,4),%edx
rax            {base}                 1
rcx            0x10                16
#0  0x00007fffd in tensorflow::Op () from libtensorflow_cc.so.2
"""


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in ("benchmarks", "tools"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    for name in ("corpus_variants", "crashing_ops", "variant_programs", "variant_truth"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import corpus_variants  # type: ignore[import-not-found]
    import crashing_ops  # type: ignore[import-not-found]
    import variant_programs  # type: ignore[import-not-found]
    import variant_truth  # type: ignore[import-not-found]

    return SimpleNamespace(
        programs=variant_programs, truth=variant_truth, variants=corpus_variants, calls=crashing_ops.CALLS
    )


def test_every_surrounding_has_the_call_on_a_line_that_is_blamed(lab: Any) -> None:
    found = {program.surrounding: program for program in lab.programs.programs(CALL)}
    assert set(found) == set(lab.programs.SURROUNDINGS)
    for program in found.values():
        ast.parse(program.text)
        assert "blamed" not in program.text
        assert any("(" in program.text.splitlines()[line - 1] for line in program.lines)
    assert found["function"].lines == (6, 9)
    assert "LRNGrad(" in found["function"].text.splitlines()[5]
    assert "**tensors" in found["signature"].text
    assert 'values = {"input_grads": tf.ones([2, 2])}' in found["generator"].text
    assert "bias=1.0, **tensors" in found["generator"].text
    assert "tf.ones([8, 2])" in found["larger"].text


def test_a_call_of_a_public_function_has_fewer_surroundings(lab: Any) -> None:
    names = {program.surrounding for program in lab.programs.programs("tf.config.set(-1); tf.constant(1)")}
    assert names == set(lab.programs.SURROUNDINGS) - {"helper", "larger", "signature", "generator"}
    eager = next(lab.programs.programs("tf.config.set(-1); tf.constant(1)"))
    assert "    tf.config.set(-1)\n    return tf.constant(1)\n" in eager.text
    assert eager.lines == (6,)


def test_every_call_of_the_table_can_be_written(lab: Any) -> None:
    for call in lab.calls:
        for program in lab.programs.programs(call.code):
            ast.parse(program.text)
            assert program.lines


def test_an_op_is_in_the_table_once(lab: Any) -> None:
    """tools/try_ops.py keeps a row for each op, and its cases are named by it."""
    ops = [call.op for call in lab.calls]
    assert len(set(ops)) == len(ops)


def test_versions_of_an_op_are_in_one_part(lab: Any) -> None:
    assert lab.programs.part("BlockLSTM") == lab.programs.part("BlockLSTMV2")
    assert {lab.programs.part(call.op) for call in lab.calls} == {"train", "heldout"}


def test_the_choice_of_surroundings_depends_on_the_op_only(lab: Any) -> None:
    names = list(lab.programs.SURROUNDINGS)
    assert lab.programs.chosen("LRNGrad", names, 2) == lab.programs.chosen("LRNGrad", names[::-1], 2)
    assert len({tuple(lab.programs.chosen(call.op, names, 2)) for call in lab.calls}) > 10


@pytest.mark.parametrize(
    ("signal", "stderr", "causes"),
    [
        ("SIGFPE", "", ["op-division-by-zero"]),
        ("SIGABRT", CHECK, ["op-check-failed"]),
        ("SIGABRT", CHECK.replace("tensor_shape", "mkl_layout_pass"), ["op-check-failed", "compiler-bug"]),
        ("SIGABRT", "F0000 00:00:17950 5 png_io.cc:357] 'image' Must be non NULL", ["op-check-failed"]),
        ("SIGABRT", "terminate called after throwing an instance of 'std::runtime_error'", ["op-uncaught-exception"]),
        (
            "SIGABRT",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            ["oversized-allocation", "op-uncaught-exception"],
        ),
        ("SIGABRT", "free(): invalid next size (fast)", ["op-out-of-bounds", "heap-corruption"]),
        ("SIGABRT", "DUCC FFT c2r failed:\n\nAssertion failure\nno zero-sized FFTs\n", ["op-check-failed"]),
        ("SIGABRT", "something else", []),
        ("SIGSEGV", "", []),
    ],
)
def test_the_cause_is_told_by_signal_and_message(lab: Any, signal: str, stderr: str, causes: list[str]) -> None:
    assert lab.truth.causes(signal, stderr, None) == causes


@pytest.mark.parametrize(
    ("address", "code", "base", "causes"),
    [
        ("0x0", "1", "0x0", ["op-null-dereference"]),
        ("0x7fff12345678", "1", "0x7fff00000000", ["op-out-of-bounds"]),
        ("0x12345678", "1", "0x0", ["op-out-of-bounds", "op-null-dereference"]),  # far behind a null pointer
        ("0x0", "128", "0x7fff00000000", ["op-out-of-bounds", "op-null-dereference"]),  # the address is unknown
        ("0x7fffffffcff8", "1", "0x7fffffffd000", []),  # the stack ran out
    ],
)
def test_the_cause_of_a_segfault_is_told_by_its_address(
    lab: Any, address: str, code: str, base: str, causes: list[str]
) -> None:
    fault = lab.truth.read(GDB.format(address=address, code=code, base=base))
    assert lab.truth.causes("SIGSEGV", "", fault) == causes


def test_an_empty_tensor_has_no_buffer_to_be_outside_of(lab: Any) -> None:
    fault = lab.truth.read(GDB.format(address="0x0", code="1", base="0x0"))
    for code in ("op(x=tf.zeros([2**40,0]))", "op(x=tf.zeros([0], tf.int32))", "op(widths=[])"):
        assert lab.truth.causes("SIGSEGV", "", fault, code) == ["op-out-of-bounds", "op-null-dereference"]
    assert lab.truth.causes("SIGSEGV", "", fault, "op(x=tf.zeros([10, 20]), k=[0])") == ["op-null-dereference"]


def test_an_exception_that_left_the_op_without_the_gil(lab: Any) -> None:
    output = GDB.format(address="0x60", code="1", base="0x0") + "#1  pybind11::detail::translate_exception\n"
    causes = lab.truth.causes("SIGSEGV", "", lab.truth.read(output))
    assert causes == ["op-uncaught-exception", "oversized-allocation"]
    assert lab.truth.read("[Inferior 1 exited normally]") is None


def test_a_worker_that_dies_leaves_an_exit_status(lab: Any, tmp_path: Path) -> None:
    program = next(each for each in lab.programs.programs(CALL) if each.worker)
    call = SimpleNamespace(op="LRNGradV2", code=CALL)
    truth = lab.variants.case(call, "lrn_process", program, "SIGABRT", ["op-check-failed"])
    lab.variants.write_case(tmp_path / "lrn_process", program, truth)
    assert truth["outcome"] == "exit:3"
    assert truth["op"] == ["LRNGrad", "LRNGradV2", "tf.raw_ops.LRNGrad"]
    assert {path.name for path in (tmp_path / "lrn_process").iterdir()} == {"case.json", "main.py", "run.sh"}
    assert lab.variants.dies_so(program, lab.variants.Ending("exit", "3", ""), "SIGABRT")
    assert not lab.variants.dies_so(program, lab.variants.Ending("signal", "SIGABRT", ""), "SIGABRT")


def test_what_was_tried_before_stays_known(lab: Any, tmp_path: Path) -> None:
    for name, value in (("one", "SIGABRT"), ("two", "SIGFPE")):
        lab.variants.remember(tmp_path / "baseline.json", name, lab.variants.Ending("signal", value, ""))
    known = json.loads((tmp_path / "baseline.json").read_text())["cases"]
    assert known["one"] == {"status": {"kind": "signal", "value": "SIGABRT"}}
    assert list(known) == ["one", "two"]


def test_names_of_cases(lab: Any) -> None:
    assert lab.variants.snake("FIFOQueueV2") == "fifo_queue_v2"
