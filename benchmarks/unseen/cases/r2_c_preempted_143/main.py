import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf


class SaveOnPreemption(tf.keras.callbacks.Callback):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.asked = False
        signal.signal(signal.SIGTERM, self.ask)

    def ask(self, signum, frame):
        self.asked = True

    def on_train_batch_end(self, batch, logs=None):
        if self.asked:
            path = os.path.join(self.folder, "preempted.weights.h5")
            self.model.save_weights(path)
            print("saved", os.path.basename(path), "and leaving", flush=True)
            sys.exit(128 + signal.SIGTERM)


def main():
    subprocess.Popen(["bash", "-c", f"sleep 6; kill -TERM {os.getpid()}"])
    x = np.random.rand(1000, 8).astype("float32")
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16), tf.keras.layers.Dense(1)])
    model.compile("adam", "mae")
    model.fit(x, x[:, :1], epochs=100000, verbose=0, callbacks=[SaveOnPreemption(tempfile.mkdtemp())])


main()
