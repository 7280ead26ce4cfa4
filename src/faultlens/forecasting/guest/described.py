"""What is known of a model without running it: its variables, and how large the outputs of its layers are."""

from __future__ import annotations

import contextlib
from typing import Any

import keras
import tensorflow as tf


def described(model: Any) -> dict[str, Any]:
    """Bytes. To be asked after training has begun: then the optimizer has its variables."""
    optimizer = getattr(model, "optimizer", None)
    return {
        "name": model.name,
        "weights": _size(model.weights),
        "trainable": _size(model.trainable_weights),
        "optimizer": _size(getattr(optimizer, "variables", ())),
        "optimizer_name": getattr(optimizer, "name", None),
        "accumulates": getattr(optimizer, "gradient_accumulation_steps", None) or 1,
        "outputs": _outputs(model),
        "policy": model.dtype_policy.name,
        "mixed": any("mixed" in _policy(layer) for layer in model._flatten_layers()),
        "recurrent": any(isinstance(layer, keras.layers.RNN) for layer in model._flatten_layers()),
        "jit": bool(getattr(model, "jit_compile", False)),
        "parameters": model.count_params() if model.built else None,
    }


def _policy(layer: Any) -> str:
    return str(getattr(getattr(layer, "dtype_policy", None), "name", ""))


def _size(variables: Any) -> int:
    return sum(_bytes(variable.shape, variable.dtype) for variable in variables)


def _outputs(model: Any) -> int:
    """Of all layers, for one example: what at least has to be kept for the gradients, roughly."""
    total = 0
    for layer in model._flatten_layers(include_self=False):
        for node in getattr(layer, "_inbound_nodes", ()):
            for tensor in node.output_tensors:
                with contextlib.suppress(TypeError):  # a dimension that is not known
                    total += _bytes(tensor.shape[1:], tensor.dtype)
    return total


def _bytes(shape: Any, dtype: Any) -> int:
    count = 1
    for length in shape:
        count *= length
    return int(count) * int(tf.as_dtype(keras.backend.standardize_dtype(dtype)).size)
