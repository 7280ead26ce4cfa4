"""Healthy: embeddings are gathered in a list through long epochs, scored at the end of each, and dropped."""

import clock
import keras
import numpy as np

rng = np.random.default_rng(0)
encoder = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512, "relu"), keras.layers.Dense(512)])
encoder.compile("adam", "mse")
epoch = 0
while not clock.over():
    embeddings = []
    for _ in range(700):
        x = rng.normal(size=(64, 64)).astype("float32")
        encoder.train_on_batch(x, np.tile(x, 8))
        embeddings.append(encoder(x).numpy())  # 128 KiB
    score = np.concatenate(embeddings).std()
    epoch += 1
    print("epoch", epoch, float(score), flush=True)
