import ctypes
import os

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libmetrics.so"))
lib.metrics_push.argtypes = [ctypes.c_char_p, ctypes.c_double]


class MetricsCallback(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        lib.metrics_start()

    def on_train_batch_end(self, batch, logs=None):
        lib.metrics_push(b"loss", float(logs["loss"]))


def main():
    x = np.random.rand(512, 6).astype("float32")
    model = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[MetricsCallback()])
    print("trained, loss", model.evaluate(x, x[:, :1], verbose=0))


main()
