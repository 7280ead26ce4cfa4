"""Gradients of the ops of ops.cc: one is right. As users write it: imported, it loads the library itself."""

import os
from typing import Any

import tensorflow as tf

tf.load_op_library(os.environ["HARMFUL"])
tf.constant([1.0]) + 1.0  # runs TensorFlow while it is imported, which starts threads


@tf.RegisterGradient("Squares")
def _right(op: Any, upstream: Any) -> Any:
    return 2.0 * op.inputs[0] * upstream


@tf.RegisterGradient("SquaresWithWrongGradient")
def _wrong(op: Any, upstream: Any) -> Any:
    return op.inputs[0] * upstream


@tf.RegisterGradient("SquaresWithFlatGradient")
def _flat(op: Any, upstream: Any) -> Any:
    return tf.reshape(2.0 * op.inputs[0] * upstream, [-1])
