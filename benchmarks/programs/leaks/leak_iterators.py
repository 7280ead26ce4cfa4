"""Leak: every round of evaluation makes an iterator of a shuffled data set and keeps it."""

import os
import sys

import clock
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.normal(size=(2048, 256)).astype("float32")
data = tf.data.Dataset.from_tensor_slices(x).shuffle(2048).batch(64).prefetch(2)
model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(256)])
model.compile("adam", "mse")
iterators = []
for step in clock.steps():
    batch = x[rng.integers(0, 2048, 64)]
    model.train_on_batch(batch, batch)
    if step % 200 == 0:
        iterators.append(iter(data))
        batch = next(iterators[-1])
        model.test_on_batch(batch, batch)
sys.stdout.flush()
os._exit(0)  # TensorFlow takes minutes to end so many iterators
