"""Leak: a thread writes each summary and then waits for ever. Threads."""

import threading

import clock
import keras
import numpy as np

ended = threading.Event()
summaries = {}


def summarize(step, weights):
    summaries[step % 10] = float(np.mean([np.abs(weight).mean() for weight in weights]))
    ended.wait()


rng = np.random.default_rng(0)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(64)])
model.compile("adam", "mse")
for step in clock.steps():
    x = rng.normal(size=(32, 64)).astype("float32")
    model.train_on_batch(x, x)
    if step % 25 == 0 and threading.active_count() < 1500:
        threading.Thread(target=summarize, args=(step, model.get_weights()), daemon=True).start()
ended.set()
