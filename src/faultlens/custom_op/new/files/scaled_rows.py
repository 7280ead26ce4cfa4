"""ScaledRows: rows of a matrix, picked by index and multiplied by a factor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

_LIBRARY = Path(__file__).with_name("_scaled_rows.so")
if not _LIBRARY.exists():
    raise ImportError(f"{_LIBRARY.name} is not built yet: run `make` in {_LIBRARY.parent}")
_ops = tf.load_op_library(str(_LIBRARY))


def scaled_rows(values: Any, rows: Any, factor: float = 1.0, name: str | None = None) -> tf.Tensor:
    """`factor * values[rows]`: values of shape [height, width], rows of shape [count], the result [count, width]."""
    values = tf.convert_to_tensor(values)
    rows = tf.convert_to_tensor(rows, dtype_hint=tf.int32)
    return _ops.scaled_rows(values=values, rows=rows, factor=factor, name=name)


@tf.RegisterGradient("ScaledRows")
def _gradient(op: tf.Operation, upstream: tf.Tensor) -> list[tf.Tensor | None]:
    values, rows = op.inputs
    upstream *= tf.cast(op.get_attr("factor"), upstream.dtype)
    return [tf.math.unsorted_segment_sum(upstream, rows, tf.shape(values)[0]), None]
