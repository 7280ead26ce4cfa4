import ctypes
import os

import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
lib = ctypes.CDLL(os.path.join(HERE, "build", "libaxpy.so"))
lib.axpy.argtypes = [ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]


class FastMomentum(tf.keras.optimizers.SGD):
    """SGD whose host side averaging of weights runs in our C kernel."""

    def average_into(self, target, weights):
        for slot, w in zip(target, weights):
            values = np.ascontiguousarray(w.numpy(), dtype=np.float64)
            lib.axpy(0.5, values.ctypes.data, slot.ctypes.data, values.size)


class Averager(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.slots = [np.zeros(w.shape) for w in self.model.trainable_variables]

    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.average_into(self.slots, self.model.trainable_variables)


x = np.random.rand(128, 8).astype("float32")
model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
model.compile(FastMomentum(0.01), "mse")
averager = Averager()
model.fit(x, x[:, :1], epochs=3, verbose=2, callbacks=[averager])
print(averager.slots[0].mean())
