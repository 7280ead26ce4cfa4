"""Keras fit of a small CNN, then a loop of small eager operations.

Prints the seconds per step and per operation, by the clock and of CPU, to standard error, for each of several parts.
They are long enough (a tenth of a second and more) for whatever happens now and then to happen in all of them. A part
begins when a line comes in, and ends with a line: so that several programs can take turns."""

import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf

EPOCHS, CHUNKS = int(sys.argv[1]), int(sys.argv[2])
SAMPLES, BATCH = 2048, 32
CHUNK, OPERATIONS = 7000, 3


class Clock(tf.keras.callbacks.Callback):
    """Times the parts, each when it is its turn."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__()
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.name, self.count = name, count

    def begin(self) -> None:
        sys.stdin.readline()
        self.started = time.perf_counter(), time.process_time()

    def end(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        self.wall.append((wall - self.started[0]) / self.count)
        self.cpu.append((cpu - self.started[1]) / self.count)
        print("done", flush=True)

    def on_epoch_begin(self, *_: object, **__: object) -> None:
        self.begin()

    def on_epoch_end(self, *_: object, **__: object) -> None:
        self.end()

    def parts(self) -> dict[str, list[float]]:
        return {self.name: self.wall, f"{self.name}_cpu": self.cpu}


def fit() -> dict[str, list[float]]:
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
    clock = Clock("fit", SAMPLES // BATCH)
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[clock])
    return clock.parts()


def eager() -> dict[str, list[float]]:
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, 0.5]])
    for _ in range(1000):
        a = tf.nn.relu(a * b + b)
    clock = Clock("eager", CHUNK * OPERATIONS)
    for _ in range(CHUNKS):
        clock.begin()
        for _ in range(CHUNK):
            a = tf.nn.relu(a * b + b)
        clock.end()
    return clock.parts()


print(json.dumps(fit() | eager()), file=sys.stderr)
