import os
import subprocess
import sys

import numpy as np
import tensorflow as tf


def start_batch_prologue():
    """The site asks every job to start the accounting script first."""
    return subprocess.Popen([sys.executable, "accounting.py", str(os.getpid()), "6"])


class Progress(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch % 10 == 0:
            print(f"epoch {epoch}: {logs['loss']:.4f}", flush=True)


def main():
    start_batch_prologue()
    x = np.random.rand(2048, 20).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y, epochs=100000, batch_size=64, verbose=0, callbacks=[Progress()])
    model.save("final.keras")


if __name__ == "__main__":
    main()
