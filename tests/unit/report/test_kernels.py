"""Ops in flight in words: what an expert wants to know, of any record that a report can hold."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

import in_flight
import recorded
from faultlens.records.crash import Attribute, Crash, Frame, Kernel, Progress, ProgressMark, Tensor
from faultlens.records.report_file import Report
from faultlens.report import html, markdown, terminal
from faultlens.report.kernels import (
    attribute_in_words,
    attributes_of,
    briefly,
    contents_in_words,
    facts_of,
    kernel_in_words,
    others_in_words,
)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (in_flight.AT_FAULT, "FastGather (node model/gather/FastGather, layer gather)"),
        (Kernel(op="MatMul", node="MatMul", thread=1), "MatMul"),
        (Kernel(op="_FusedMatMul", node="d/Relu", thread=1), "MatMul (computed as _FusedMatMul, node d/Relu)"),
        (
            Kernel(op="MatMul", node="a/b", thread=1, stage="construct"),
            "MatMul (node a/b, its kernel was being constructed)",
        ),
    ],
)
def test_title(kernel: Kernel, words: str) -> None:
    assert kernel_in_words(kernel) == words


def test_inputs_are_numbered_and_single_numbers_told() -> None:
    assert briefly(in_flight.AT_FAULT, 4) == [
        "0: float32 [32, 10]",
        "1: int64 [12]",
        "2: int64 [] = 0",
        "3: string [2]",
        "… 2 more inputs",
    ]
    assert briefly(in_flight.AT_FAULT, 6)[-1] == "5: resource []"


def test_facts() -> None:
    assert facts_of(in_flight.AT_FAULT, in_flight.report().crash) == [
        ("thread", "thread 4251 'tf_Compute' (crashed)"),
        ("node", "model/gather/FastGather"),
        ("function", "__inference_step_412"),
        ("layer", "gather"),
        ("written at", "train.py:14 in step"),
        ("kernel", "FastGatherOp<float, long>"),
    ]
    assert facts_of(in_flight.AT_FAULT, recorded.ended())[0] == ("thread", "thread 4251")


def test_ops_beside_the_one_at_fault() -> None:
    crash = in_flight.report().crash
    assert others_in_words(crash) == "also in flight: MatMul, StatefulPartitionedCall"
    waiting = replace(crash, kernels=(in_flight.BESIDE, in_flight.WAITING, in_flight.BESIDE))
    assert others_in_words(waiting) == "in flight: 2 × MatMul, StatefulPartitionedCall"
    many = tuple(Kernel(op=f"Op{number}", node="n", thread=1) for number in range(8))
    assert others_in_words(replace(crash, kernels=many)) == "in flight: Op0, Op1, Op2, Op3, Op4, Op5, … 2 more ops"
    assert others_in_words(recorded.ended()) is None


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("type", "float32", "float32"),
        ("func", "__inference_body_7", "__inference_body_7"),
        ("string", "NHWC", "'NHWC'"),
        ("shape", [-1, 8], "[-1, 8]"),
        ("list(int)", list(range(10)), "[0, 1, 2, 3, 4, 5, 6, 7, … 10 in all]"),
        ("list(shape)", [[1], []], "[[1], []]"),
        ("bool", False, "False"),
        ("float", 0.10000000149011612, "0.1"),
        ("other", None, "not read"),
        ("func", {"name": "f", "of": {"a": 1}}, "{name: 'f', of: {a: 1}}"),
        ("other", [[[[[1]]]]], "[[[[…]]]]"),
        ("string", "\x1b[2J\n", r"'\x1b[2J\n'"),
    ],
)
def test_attribute(kind: str, value: Any, words: str) -> None:
    assert attribute_in_words(Attribute(kind=kind, value=value)) == words


def test_attributes_of_tensorflow_itself_come_last() -> None:
    names = [name for name, _ in attributes_of(in_flight.AT_FAULT, 9)]
    assert names == ["T", "shape", "table", "validate", "_class"]
    assert len(attributes_of(in_flight.AT_FAULT, 2)) == 2


def test_contents_are_named_those_of_children_too() -> None:
    kept = "contents of 3 inputs (121 bytes) are kept in this report; `--no-contents` leaves them out"
    crash = in_flight.report().crash
    assert contents_in_words(crash) == kept
    assert contents_in_words(recorded.ended(children=(crash,))) == kept
    assert contents_in_words(replace(crash, kernels=(in_flight.BESIDE,))) is None


# ----------------------------------------------------------------------------------- any record there is

TEXT = st.text(st.characters(), max_size=60)
INTEGERS = st.integers() | st.integers(-1, 40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
FRAMES = st.builds(Frame, kind=st.just("python"), function=TEXT, file=st.none() | TEXT, line=st.none() | INTEGERS)
TENSORS = st.builds(
    Tensor,
    dtype=st.sampled_from(["float32", "int64", "bool", "string", "bfloat16", "odd\x1b"]),
    shape=st.lists(INTEGERS, max_size=9).map(tuple),
    contents=st.none() | st.binary(max_size=64),
    strings=st.none() | st.lists(st.binary(max_size=50), max_size=6).map(tuple),
)
KERNELS = st.builds(
    Kernel,
    op=TEXT,
    node=TEXT,
    thread=INTEGERS,
    stage=st.sampled_from(["compute", "construct"]),
    inputs=st.lists(st.none() | TENSORS, max_size=16).map(tuple),
    attributes=st.dictionaries(TEXT, st.builds(Attribute, kind=TEXT, value=VALUES), max_size=5),
    kernel_class=st.none() | TEXT,
    written=st.none() | FRAMES,
    layer=st.none() | TEXT,
    at_fault=st.booleans(),
)
MARKS = st.builds(
    ProgressMark,
    seconds=st.floats(0, 50) | st.floats(),
    kind=st.sampled_from(["epoch", "save", "saved", "train", "end", "?"]),
    text=TEXT,
)
PROGRESS = st.builds(
    Progress,
    phase=st.none() | st.sampled_from(["train", "evaluate", "predict", "save", "data", "trace"]) | TEXT,
    epoch=st.none() | INTEGERS,
    epochs=st.none() | INTEGERS,
    step=st.none() | INTEGERS,
    steps=st.none() | INTEGERS,
    seconds_before=st.none() | st.floats(),
    detail=st.none() | TEXT,
    marks=st.lists(MARKS, max_size=30).map(tuple),
)
CONTROLS = {chr(code) for code in (*range(32), *range(127, 160))} - {"\n"}


@settings(max_examples=60, deadline=None)
@given(kernels=st.lists(KERNELS, max_size=4), progress=st.none() | PROGRESS, width=st.integers(20, 200))
def test_any_record_can_be_shown(kernels: list[Kernel], progress: Progress | None, width: int) -> None:
    found = in_flight.report()
    crash: Crash = replace(found.crash, kernels=tuple(kernels), progress=progress)
    report: Report = replace(found, crash=crash)
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False)
    terminal.render(report, console=console)
    terminal.render(report, verbose=True, console=console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for text in (shown, html.page(report), markdown.document(report)):
        assert not set(text) & CONTROLS
        text.encode()
