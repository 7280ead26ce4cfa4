import os
import tempfile

import numpy as np
import tensorflow as tf


class EpochArchive(tf.keras.callbacks.Callback):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def on_epoch_end(self, epoch, logs=None):
        path = os.path.join(self.folder, f"epoch{epoch}.keras")
        self.model.save(path)
        print("archived", os.path.getsize(path), "bytes", flush=True)


def autoencoder(width):
    return tf.keras.Sequential([
        tf.keras.Input((128,)),
        tf.keras.layers.Dense(width, activation="relu"),
        tf.keras.layers.Dense(128),
    ])


def main():
    x = np.random.rand(256, 128).astype("float32")
    with tempfile.TemporaryDirectory() as folder:
        for width in (64, 256, 2048):
            model = autoencoder(width)
            model.compile("adam", "mse")
            model.fit(x, x, epochs=1, verbose=0, callbacks=[EpochArchive(folder)])
    print("all sizes archived")


main()
