"""Does an op's gradient come back, and is it right? Runs in the Python of the user's programs, from 3.9 on.

Along one random direction the slope is also measured: (f(x + h d) - f(x - h d)) / 2h. Where the function itself is
not smooth there, two steps of different lengths measure differently, and nothing is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

STEPS = {"float32": (1e-2, 5e-3), "float64": (1e-4, 5e-5)}
AGREE, WRONG = 0.02, 0.15  # relative: of both measurements, of the gradient and the measurement


def gradient(call: Any) -> dict[str, Any]:
    watched = [each for each in call.tensors if each.dtype.is_floating or each.dtype.is_complex]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = [each for each in call() if each.dtype.is_floating or each.dtype.is_complex]
        total = [tf.reduce_sum(each) for each in outputs]
    if not watched or not outputs:
        return {"ok": [], "problems": []}
    slopes = tape.gradient(total, watched)
    told: dict[str, Any] = {"ok": [], "problems": []}
    for tensor, slope in zip(watched, slopes):
        if slope is None:
            continue
        slope = tf.convert_to_tensor(slope)
        if slope.shape != tensor.shape:
            told["problems"].append(
                ["gradient-shape", f"the gradient of a {tensor.shape} input has shape {slope.shape}"]
            )
        elif words := disagreement(call, tensor, slope):
            told["problems"].append(["wrong-gradient", words])
    return told


def disagreement(call: Any, tensor: Any, slope: Any) -> str | None:
    if tensor.dtype.name not in STEPS or not 0 < int(np.prod(tensor.shape)) <= 256:
        return None
    direction = np.random.default_rng(7).choice([-1.0, 1.0], tensor.shape).astype(tensor.dtype.as_numpy_dtype)
    measured = [along(call, tensor, direction, step) for step in STEPS[tensor.dtype.name]]
    said = float(np.sum(slope.numpy().astype(np.float64) * direction))
    size = max(abs(measured[0]), abs(measured[1]), abs(said), 1e-2)
    if not np.all(np.isfinite([*measured, said])) or abs(measured[0] - measured[1]) > AGREE * size:
        return None
    if abs(said - measured[1]) <= WRONG * size:
        return None
    return f"along one direction it says {said:.4g}, measured is {measured[1]:.4g}"


def along(call: Any, tensor: Any, direction: Any, step: float) -> float:
    def total(sign: float) -> float:
        given = [each + sign * step * direction if each is tensor else each for each in call.tensors]
        outputs = [each for each in call(*given) if each.dtype.is_floating]
        return float(sum(np.sum(each.numpy().astype(np.float64)) for each in outputs))

    return (total(1.0) - total(-1.0)) / (2 * step)
