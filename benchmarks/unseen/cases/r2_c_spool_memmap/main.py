import os

import numpy as np
import tensorflow as tf

SPOOL = os.environ["SPOOL_DIR"]


class ActivationStore:
    """Keeps the activations of one layer for later analysis."""

    def __init__(self, samples, width):
        self.data = np.memmap(os.path.join(SPOOL, "activations.f32"), np.float32, "w+", shape=(samples, width))
        self.filled = 0

    def add(self, batch):
        n = len(batch)
        self.data[self.filled:self.filled + n] = batch
        self.filled += n


def main():
    samples, width = 8192, 1024
    store = ActivationStore(samples, width)
    inputs = tf.keras.Input((64,))
    hidden = tf.keras.layers.Dense(width, activation="relu", name="hidden")(inputs)
    probe = tf.keras.Model(inputs, hidden)
    ds = tf.data.Dataset.from_tensor_slices(np.random.rand(samples, 64).astype("float32")).batch(256)
    for x in ds:
        store.add(probe(x, training=False).numpy())
    print("stored", store.filled, "rows, mean", store.data.mean())


main()
