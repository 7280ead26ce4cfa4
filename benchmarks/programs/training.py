"""Keras fit of a small CNN, then a loop of small eager operations.

Prints the seconds per step and per operation, by the clock and of CPU, to standard error. Each is the median of
parts long enough (a tenth of a second and more) for whatever happens now and then to happen in all of them."""

import json
import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf

EPOCHS, CHUNKS = int(sys.argv[1]), int(sys.argv[2])
SAMPLES, BATCH = 2048, 32
CHUNK, OPERATIONS = 7000, 3


class Clock(tf.keras.callbacks.Callback):
    """Notes the time and the CPU time, once at the beginning and at the end of each part."""

    def __init__(self) -> None:
        super().__init__()
        self.marks = [(time.perf_counter(), time.process_time())]

    def mark(self) -> None:
        self.marks.append((time.perf_counter(), time.process_time()))

    def on_epoch_end(self, *_: object, **__: object) -> None:
        self.mark()

    def medians(self, name: str, count: int) -> dict[str, float]:
        parts = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(self.marks, self.marks[1:], strict=False)]
        wall, cpu = zip(*parts, strict=True)
        return {name: statistics.median(wall) / count, f"{name}_cpu": statistics.median(cpu) / count}


def fit() -> dict[str, float]:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(SAMPLES, 28, 28, 1)).astype("float32"), rng.integers(0, 10, SAMPLES)
    model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)  # traced and warm
    clock = Clock()
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[clock])
    return clock.medians("fit", SAMPLES // BATCH)


def eager() -> dict[str, float]:
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, 0.5]])
    for _ in range(1000):
        a = tf.nn.relu(a * b + b)
    clock = Clock()
    for _ in range(CHUNKS):
        for _ in range(CHUNK):
            a = tf.nn.relu(a * b + b)
        clock.mark()
    return clock.medians("eager", CHUNK * OPERATIONS)


print(json.dumps(fit() | eager()), file=sys.stderr)
