"""Healthy: as healthy_gathered, with steps that are known: the batches come from a tf.data.Dataset."""

import clock
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
data = tf.data.Dataset.from_tensor_slices(rng.normal(size=(44_800, 64)).astype("float32")).batch(64)
encoder = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512, "relu"), keras.layers.Dense(512)])
encoder.compile("adam", "mse")
epoch = 0
while not clock.over():
    embeddings = []
    for x in data:
        encoder.train_on_batch(x, np.tile(x.numpy(), 8))
        embeddings.append(encoder(x).numpy())  # 128 KiB
    score = np.concatenate(embeddings).std()
    epoch += 1
    print("epoch", epoch, float(score), flush=True)
