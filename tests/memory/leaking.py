"""Programs that leak, one kind each: `python leaking.py KIND FOLDER [LIBRARY]`. Every step they keep a little more,
until there is a file `enough` in the folder."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from multiprocessing import shared_memory
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

STEPS = 2500
PAUSE_S = 0.012  # a step of a small model takes that long
kept: list[object] = []
enough = Path(sys.argv[2]) / "enough"
weights = tf.Variable(tf.zeros((8, 4)))


@tf.function
def train_step(batch, number):
    return tf.reduce_sum(tf.matmul(batch, weights)) * tf.cast(number, tf.float32)


def steps(count=STEPS):
    data = tf.data.Dataset.from_tensor_slices(np.zeros((64, 8), "float32")).repeat().batch(8)
    for number, batch in enumerate(data.take(count)):
        yield number, batch
        time.sleep(PAUSE_S)
        if enough.exists():
            break


class Remember(keras.callbacks.Callback):
    """Keeps the activations of every batch: 400 kB each."""

    def __init__(self):
        super().__init__()
        self.activations = {}

    def on_train_batch_end(self, *_, **__):
        self.activations[len(self.activations)] = np.ones(50_000)
        time.sleep(PAUSE_S)
        self.model.stop_training = enough.exists()


def python_objects(*_):
    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.zeros((8 * STEPS // 5, 8), "float32")
    model.fit(data, data[:, :1], batch_size=8, epochs=5, verbose=0, callbacks=[Remember()])


def tensors(*_):
    """Until there is no more memory: 800 kB with every step."""
    for number, batch in steps(100_000):
        kept.append(train_step(batch, tf.constant(number)) + tf.zeros((200, 1000)))


def retracing(*_):
    for number, batch in steps():
        train_step(batch, number)


def variables(*_):
    for _number, _batch in steps():
        kept.append(tf.Variable(tf.zeros((100, 1000))))


def native(_, library):
    leak = ctypes.CDLL(library).leak
    for _number, _batch in steps():
        leak(300_000)


def counted(folder, *_):
    """Files, threads and shared memory at once."""
    done = threading.Event()
    for number, _batch in steps():
        if number % 4:
            continue
        kept.append(open(Path(folder) / f"part-{number:05}", "w"))  # noqa: SIM115
        threading.Thread(target=done.wait, name="prefetch", daemon=True).start()
        segment = shared_memory.SharedMemory(create=True, size=100_000)
        segment.buf[:] = bytes(100_000)
        kept.append(segment)
    for segment in kept:
        if isinstance(segment, shared_memory.SharedMemory):
            segment.unlink()
    os._exit(0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
