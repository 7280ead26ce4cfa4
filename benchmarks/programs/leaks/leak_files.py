"""Leak: a log file is opened for every step and stays open. File descriptors."""

import resource
import tempfile

import clock
import keras
import numpy as np

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
rng = np.random.default_rng(0)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(64)])
model.compile("adam", "mse")
logs = []
with tempfile.TemporaryDirectory() as folder:
    for step in clock.steps():
        x = rng.normal(size=(32, 64)).astype("float32")
        loss = model.train_on_batch(x, x)
        if step % 10 == 0:
            logs.append(open(f"{folder}/{step}.txt", "w"))
            logs[-1].write(f"{float(loss)}\n")
