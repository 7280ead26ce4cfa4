"""A crash inside a Keras layer as it is recorded: ops in flight with their inputs, progress, and a reproducer."""

from __future__ import annotations

import struct

from msgspec.structs import replace

import recorded
from faultlens.records.crash import Address, Attribute, Frame, Kernel, Progress, ProgressMark, Tensor
from faultlens.records.diagnosis import Location, Reproducer
from faultlens.records.report_file import Report

TRAIN = f"{recorded.THERE}/train.py"
WRITTEN = Frame(kind="python", function="step", file=TRAIN, line=14)


def floats(*shape: int, values: tuple[float, ...] = ()) -> Tensor:
    contents = struct.pack(f"<{len(values)}f", *values) if values else None
    return Tensor(dtype="float32", shape=shape, address=Address(0x7F39B4001180), contents=contents)


def numbers(*values: int, shape: tuple[int, ...] = ()) -> Tensor:
    return Tensor(dtype="int64", shape=shape, size=8 * len(values), contents=struct.pack(f"<{len(values)}q", *values))


AT_FAULT = Kernel(
    op="FastGather",
    node="model/gather/FastGather",
    thread=4251,
    inputs=(
        floats(32, 10),
        numbers(7, 2, 1, 0, 4, 1, 4, 9, 5, 9, 0, 6, shape=(12,)),
        numbers(0),
        Tensor(dtype="string", shape=(2,), strings=(b"digits", b"caf\xc3\xa9 \x1b[31m")),
        None,
        Tensor(dtype="resource", shape=()),
    ),
    attributes={
        "T": Attribute(kind="type", value="float32"),
        "table": Attribute(kind="string", value="digits"),
        "shape": Attribute(kind="shape", value=[-1, 10]),
        "validate": Attribute(kind="bool", value=False),
        "_class": Attribute(kind="other"),
    },
    kernel_class="FastGatherOp<float, long>",
    function="__inference_step_412",
    written=WRITTEN,
    layer="gather",
    at_fault=True,
)
BESIDE = Kernel(op="MatMul", node="model/dense_2/MatMul", thread=4252, inputs=(floats(32, 64), floats(64, 10)))
WAITING = Kernel(op="StatefulPartitionedCall", node="StatefulPartitionedCall", thread=4242)

MARKS = (
    ProgressMark(seconds=2.0, kind="trace", text="train_function"),
    *(ProgressMark(seconds=5.0 + 9 * number, kind="epoch", text=f"epoch {number + 1}") for number in range(4)),
    ProgressMark(seconds=36.5, kind="save", text="model.keras"),
    ProgressMark(seconds=38.0, kind="saved", text="model.keras"),
)
PROGRESS = Progress(phase="train", epoch=4, epochs=10, step=1204, steps=1875, seconds_before=0.012, marks=MARKS)

SCRIPT = """\
import numpy as np
import tensorflow as tf

fast = tf.load_op_library("./fast_gather.so")
logits = np.load("input_0.npy")
fast.fast_gather(logits, indices=[7], axis=0)
"""
REPRODUCER = Reproducer(
    kind="op",
    script=SCRIPT,
    files={"input_0.npy": bytes(1408)},
    runs=3,
    same=3,
    signature="SIGSEGV in FastGatherOp<…>::Compute",
)


def report(*, reproducer: Reproducer | None = None) -> Report:
    """The custom op of train.py, written in line 14 of a traced function that line 24 calls."""
    found = recorded.diagnosed("segv_in_custom_op")
    verdict = replace(
        found.diagnoses[0],
        location=Location(file=TRAIN, line=14, function="step"),
        called_from=Location(file=TRAIN, line=24, function="main"),
    )
    crash = replace(found.crash, kernels=(AT_FAULT, BESIDE, WAITING), progress=PROGRESS)
    return replace(found, crash=crash, diagnoses=(verdict, *found.diagnoses[1:]), reproducer=reproducer)
