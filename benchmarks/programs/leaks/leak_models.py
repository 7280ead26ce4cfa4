"""Leak: every round builds a model and keeps its History, which keeps the model. TensorFlow variables, graphs."""

import clock
import keras
import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(256, 64)).astype("float32")
histories = []
for _ in clock.steps():
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(1024, "relu"), keras.layers.Dense(64)])
    model.compile("adam", "mse")
    histories.append(model.fit(x, x, epochs=2, batch_size=64, verbose=0))
