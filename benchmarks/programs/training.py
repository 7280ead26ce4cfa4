"""Keras fit of a small CNN, then an eager loop of small operations; prints the seconds per step and per operation."""

import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf

EPOCHS, EAGER_ROUNDS = int(sys.argv[1]), int(sys.argv[2])
SAMPLES, BATCH, OPERATIONS = 2048, 32, 3


def fit() -> float:
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
    start = time.perf_counter()
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    return (time.perf_counter() - start) / (EPOCHS * SAMPLES // BATCH)


def eager() -> float:
    a, b = tf.constant([[1.0, 2.0]]), tf.constant([[0.5, 0.5]])
    for _ in range(1000):
        a = tf.nn.relu(a * b + b)
    start = time.perf_counter()
    for _ in range(EAGER_ROUNDS):
        a = tf.nn.relu(a * b + b)
    return (time.perf_counter() - start) / (EAGER_ROUNDS * OPERATIONS)


print(json.dumps({"fit": fit(), "eager": eager()}))
