"""Leak: a callback keeps the predictions of every step. Python memory: arrays in a list of the callback."""

import clock
import keras
import numpy as np


class Monitor(keras.callbacks.Callback):
    def __init__(self, sample):
        super().__init__()
        self.sample = sample
        self.predictions = []

    def on_train_batch_end(self, batch, logs=None):
        self.predictions.append(self.model(self.sample).numpy())  # 64 KiB
        if clock.over():
            self.model.stop_training = True


rng = np.random.default_rng(0)
x = rng.normal(size=(4096, 32)).astype("float32")
model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(32)])
model.compile("adam", "mse")
model.fit(x, x, epochs=1000, batch_size=32, callbacks=[Monitor(x[:512])], verbose=0)
