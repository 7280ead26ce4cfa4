"""What would others say of the peak of training? python forecast_rivals.py MODEL BATCH …, a line of JSON each.

Analytic: base + weights + gradients (as the trained weights) + the optimizer's variables + the outputs of all layers
without layers inside, in a training step, 4 bytes a number. XLA: base + the total of the buffer assignment of the
training step, which is compiled and not run. The base is what a process has that only imported TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

LIMIT = 8 << 30
TOTAL = re.compile(r"^Total bytes used: (\d+)", re.M)


def main(name: str, batches: list[int]) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    with tempfile.TemporaryDirectory(prefix="forecast-rivals-") as folder:
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        import tensorflow as tf

        base = _anonymous()
        for batch in batches:
            said = {"model": name, "batch": batch, "base": base, **_said(name, batch, Path(folder))}
            print(json.dumps(said), flush=True)
            tf.keras.backend.clear_session()


def _said(name: str, batch: int, folder: Path) -> dict[str, Any]:
    import forecast_data
    import forecast_models
    import tensorflow as tf

    start = time.perf_counter()
    entry = forecast_models.MODELS[name]
    model = getattr(forecast_models, entry.build)()
    data = tf.nest.map_structure(tf.constant, forecast_data.example_of(model, entry.data_spec).pool(batch))
    step = tf.function(model.train_step, jit_compile=True)
    step.get_concrete_function(data)  # all variables are made now
    with _layer_outputs() as numbers:
        tf.function(model.train_step).get_concrete_function(data)
    state = {
        "weights": sum(_bytes(each) for each in model.variables),
        "gradients": sum(_bytes(each) for each in model.trainable_variables),
        "optimizer": sum(_bytes(each) for optimizer in _optimizers(model) for each in optimizer.variables),
        "outputs": 4 * sum(numbers),
    }
    analytic_s = time.perf_counter() - start
    said: dict[str, Any] = {"analytic": state, "analytic_s": analytic_s, "xla": None, "xla_error": None}
    try:
        step.experimental_get_compiler_ir(data)(stage="optimized_hlo")
        said["xla"] = max(int(TOTAL.search(text)[1]) for text in _reports(folder))  # type: ignore[index]
    except Exception as error:
        said["xla_error"] = f"{type(error).__name__}: {error}"[:300]
    said["xla_s"] = time.perf_counter() - start - analytic_s
    return said


def _optimizers(model: Any) -> list[Any]:
    import keras

    return [each for each in vars(model).values() if isinstance(each, keras.optimizers.Optimizer)]


@contextlib.contextmanager
def _layer_outputs() -> Iterator[list[int]]:
    """How many numbers each layer gives that is called meanwhile."""
    import keras
    import tensorflow as tf

    numbers: list[int] = []
    call = keras.layers.Layer.__call__

    def counted(self: Any, *args: Any, **more: Any) -> Any:
        outputs = call(self, *args, **more)
        if not list(self._flatten_layers(include_self=False)):
            numbers.extend(prod(each.shape) for each in tf.nest.flatten(outputs) if hasattr(each, "shape"))
        return outputs

    keras.layers.Layer.__call__ = counted
    try:
        yield numbers
    finally:
        keras.layers.Layer.__call__ = call


def _reports(folder: Path) -> Iterator[str]:
    """The reports of XLA on what it compiled since the last time."""
    for path in folder.iterdir():
        if path.name.endswith("memory-usage-report.txt"):
            yield path.read_text()
        path.unlink()


def _bytes(variable: Any) -> int:
    return prod(variable.shape) * int(variable.value.dtype.size)


def _anonymous() -> int:
    found = re.search(r"^RssAnon:\s+(\d+)", Path("/proc/self/status").read_text(), re.M)
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
