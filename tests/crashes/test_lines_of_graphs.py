"""Crashes inside graphs point to the line that wrote the op."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

import pytest

from faultlens.records.crash import Crash, Kernel

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]

LSTM = """\
import tensorflow as tf


def lstm(x):
    zero, peephole = tf.zeros([2, 5]), tf.zeros([5])
    return tf.raw_ops.BlockLSTMV2(
        seq_len_max=tf.constant(9, tf.int64), x=x, cs_prev=zero, h_prev=zero, w=tf.zeros([9, 20]),
        wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([20])).h
"""

FUNCTION = """\
import tensorflow as tf
from layers import lstm


@tf.function
def encode(x):
    return lstm(x) * 2.0


@tf.function
def step(x):
    if tf.reduce_sum(x) < 1e9:
        y = encode(x)
    else:
        y = tf.zeros([3, 2, 5])
    return y + 1.0


step(tf.random.normal([3, 2, 4]))
"""

DATASET = """\
import tensorflow as tf
from layers import lstm


def prepare(x):
    return lstm(x) + 1.0


batches = tf.data.Dataset.from_tensors(tf.random.normal([3, 2, 4])).repeat(5).map(prepare, num_parallel_calls=2)
for batch in batches:
    print(batch)
"""

COMPILED = """\
import tensorflow as tf


@tf.function(jit_compile=True)
def reserve():
    shape = tf.constant([100_000_000, 900_000_000, 900_000_000], tf.int64)
    return tf.raw_ops.EmptyTensorList(
        element_shape=shape, max_num_elements=tf.constant(16), element_dtype=tf.int32)


reserve()
"""

LAYER = """\
import numpy as np
import tensorflow as tf
from layers import lstm


class Packed(tf.keras.layers.Layer):
    def call(self, x):
        x = tf.reshape(x, [3, 2, 4])
        return tf.reshape(lstm(x), [2, 15])


inputs = tf.keras.Input((12,), batch_size=2)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(Packed(name="packed")(inputs)))
model.compile("sgd", "mse")
model.fit(np.ones((4, 12), "float32"), np.ones((4, 1), "float32"), batch_size=2, verbose=0)
"""

GRADIENT = """\
import tensorflow as tf
from layers import lstm


@tf.custom_gradient
def square(x):
    def gradient(upstream):
        return lstm(upstream)[:, :, :4]
    return x * x, gradient


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(square(x) * 3.0)
    return tape.gradient(loss, x)


step(tf.random.normal([3, 2, 4]))
"""

EAGER = """\
import tensorflow as tf
from layers import lstm


@tf.function
def step(x):
    return lstm(x)


x = tf.random.normal([3, 2, 4])
step.get_concrete_function(x)
lstm(x)
"""


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def died(run, folder: Path, program: str) -> tuple[Crash, Kernel]:
    (folder / "layers.py").write_text(LSTM)
    (folder / "main.py").write_text(program)
    done = run([sys.executable, "main.py"], timeout=150)
    assert done.returncode == -signal.SIGABRT, done.stderr
    crash = done.died
    assert not crash.gaps
    return crash, next(kernel for kernel in crash.kernels if kernel.op in ("BlockLSTMV2", "EmptyTensorList"))


@pytest.mark.parametrize(
    ("program", "function"),
    [(FUNCTION, "__inference_encode_"), (DATASET, "__inference_Dataset_map_prepare_"), (GRADIENT, "__inference_step_")],
    ids=["function", "dataset", "gradient"],
)
def test_the_line_of_a_helper_module(run, tmp_path: Path, program: str, function: str) -> None:
    crash, kernel = died(run, tmp_path, program)
    assert kernel.written and Path(kernel.written.file or "").name == "layers.py"
    assert (kernel.written.function, kernel.written.line) == ("lstm", line_of(LSTM, "BlockLSTMV2"))
    assert kernel.function and kernel.function.startswith(function)
    assert any(path.endswith("layers.py") for path in crash.sources)


def test_a_compiled_function(run, tmp_path: Path) -> None:
    crash, kernel = died(run, tmp_path, COMPILED)
    assert kernel.written and kernel.written.line == line_of(COMPILED, "EmptyTensorList")
    assert kernel.function and kernel.function.startswith("__inference_reserve_")
    assert any(path.endswith("main.py") for path in crash.sources)


def test_an_op_that_is_called_eagerly_has_its_line_on_the_stack(run, tmp_path: Path) -> None:
    crash, kernel = died(run, tmp_path, EAGER)
    assert (kernel.node, kernel.written, kernel.function) == ("BlockLSTMV2", None, None)
    assert crash.launching_thread
    assert len(EAGER.splitlines()) in {frame.line for frame in crash.launching_thread.frames}


def test_a_keras_layer(run, tmp_path: Path) -> None:
    crash, kernel = died(run, tmp_path, LAYER)
    assert kernel.written and kernel.written.line == line_of(LSTM, "BlockLSTMV2")
    assert kernel.layer == "packed"
    progress = crash.progress
    assert progress and (progress.phase, progress.epoch, progress.step, progress.steps) == ("train", 1, 1, 2)
