"""Leak: a cache without a bound on a function that makes arrays. Python memory: lru_cache."""

import functools

import clock
import keras
import numpy as np

rng = np.random.default_rng(0)


@functools.lru_cache(None)
def augmented(index, angle):
    return np.random.default_rng(index).normal(size=(100, 128)).astype("float32") * np.cos(angle)


model = keras.Sequential([keras.Input((128,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(128)])
model.compile("adam", "mse")
for step in clock.steps():
    x = augmented(int(rng.integers(1000)), float(rng.random()))
    model.train_on_batch(x, x)
