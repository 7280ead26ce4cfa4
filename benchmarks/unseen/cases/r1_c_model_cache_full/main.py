import os

import numpy as np
import tensorflow as tf

CACHE = os.environ["MODEL_CACHE"]


def build(width=512):
    model = tf.keras.Sequential([
        tf.keras.Input((64,)),
        tf.keras.layers.Dense(width, activation="relu"),
        tf.keras.layers.Dense(width, activation="relu"),
        tf.keras.layers.Dense(1),
    ])
    model.compile("adam", "mse")
    return model


def main():
    model = build()
    x = np.random.rand(256, 64).astype("float32")
    y = x.mean(axis=1, keepdims=True)
    checkpoint = tf.train.Checkpoint(model=model)
    manager = tf.train.CheckpointManager(checkpoint, CACHE, max_to_keep=5)
    for step in range(6):
        history = model.fit(x, y, epochs=1, verbose=0)
        path = manager.save()
        print(step, history.history["loss"][0], os.path.basename(path), flush=True)


main()
