"""Healthy: shards of a data set are opened one after the other, the last few stay open, and all pages are mapped."""

import tempfile
from collections import OrderedDict
from pathlib import Path

import clock
import keras
import numpy as np

rng = np.random.default_rng(0)
model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse")
opened = OrderedDict()
with tempfile.TemporaryDirectory() as folder:
    for number in range(60):
        np.save(f"{folder}/{number}.npy", rng.random((4096, 256), dtype="float32"))
    paths = sorted(Path(folder).glob("*.npy"))
    shard = 0
    while not clock.over():
        path = paths[shard % len(paths)]
        if path not in opened:
            opened[path] = np.load(path, mmap_mode="r")
        if len(opened) > 40:
            opened.popitem(last=False)
        for at in range(0, 4096, 128):
            batch = np.asarray(opened[path][at : at + 128])
            model.train_on_batch(batch, batch[:, :1])
        shard += 1
print(shard, "shards read")
