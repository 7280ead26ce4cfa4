"""Ops in flight of real TensorFlow programs: named with what they were given, and innocent ones not blamed."""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.inspection.corefile.read import read_core
from faultlens.records.crash import Attribute

PATTERN = Path("/proc/sys/kernel/core_pattern").read_text().strip()

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

LSTM = """
def lstm(x, steps):
    zero, peephole = tf.zeros([2, 5]), tf.zeros([5])
    return tf.raw_ops.BlockLSTMV2(
        seq_len_max=steps, x=x, cs_prev=zero, h_prev=zero, w=tf.zeros([9, 20]),
        wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([20]), cell_clip=0.5).h
"""
EAGER = f"import tensorflow as tf{LSTM}lstm(tf.reshape(tf.range(24.0), [3, 2, 4]), tf.constant(9, tf.int64))\n"
# The decomposition takes long enough to be in flight when the other op dies.
GRAPH = f"""
import time
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(4)
{LSTM}
@tf.function
def step(x, matrix):
    slow = tf.linalg.svd(matrix, compute_uv=False, name="slow")
    with tf.control_dependencies([tf.numpy_function(lambda: time.sleep(0.7), [], [], name="wait")]):
        steps = tf.identity(tf.constant(9, tf.int64))
    return lstm(x, steps), slow

step(tf.zeros([3, 2, 4]), tf.random.normal([4000, 4000]))
"""


@pytest.mark.parametrize("way", ["live", "core"])
def test_an_eager_op_with_its_inputs_and_attributes(run, tmp_path: Path, way: str) -> None:
    (tmp_path / "main.py").write_text(EAGER)
    if way == "live":
        crash = run([sys.executable, "main.py"], timeout=120).died
    else:
        crash = read_core(_core_of("main.py", tmp_path))
    kernel = crash.kernels[0]
    assert (kernel.op, kernel.at_fault, kernel.thread) == ("BlockLSTMV2", True, crash.crashed_thread.id)
    steps, x = kernel.inputs[:2]
    assert (steps.dtype, steps.shape, int.from_bytes(steps.contents, "little")) == ("int64", (), 9)
    assert (x.dtype, x.shape) == ("float32", (3, 2, 4))
    assert memoryview(x.contents).cast("f").tolist() == [float(number) for number in range(24)]
    assert kernel.attributes["cell_clip"] == Attribute(kind="float", value=0.5)
    assert kernel.kernel_class.startswith("tensorflow::BlockLSTMOp<")


def test_several_ops_in_flight_on_threads_of_the_pool(run, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(GRAPH)
    crash = run([sys.executable, "main.py"], timeout=120).died
    assert [kernel.op for kernel in crash.kernels if kernel.at_fault] == ["BlockLSTMV2"]
    assert crash.kernels[0].thread == crash.crashed_thread.id != crash.launching_thread.id
    slow = next(kernel for kernel in crash.kernels if kernel.op == "Svd")
    assert "slow" in slow.node
    assert [tensor.shape for tensor in slow.inputs] == [(4000, 4000)]
    assert slow.inputs[0].contents is None, "64 MB are over the limit"


def test_a_crash_of_native_code_after_much_work_blames_no_op(run, call, tmp_path: Path) -> None:
    work = "import tensorflow as tf\nfor i in range(200): y = tf.matmul(tf.ones([8, 8]) * i, tf.ones([8, 8]))\n"
    (tmp_path / "main.py").write_text(call("read_null", before=work))
    crash = run([sys.executable, "main.py"], timeout=120).died
    assert crash.crashed_thread.frames[0].function == "read_null"
    assert crash.kernels == ()


def _core_of(program: str, folder: Path) -> Path:
    if "/" in PATTERN or PATTERN.startswith("|"):
        pytest.skip(f"cores do not go to the working directory: {PATTERN}")

    def allow_cores() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    subprocess.run(
        [sys.executable, program], cwd=folder, preexec_fn=allow_cores, capture_output=True, env=os.environ, timeout=120
    )
    return next(folder.glob("core*"))
