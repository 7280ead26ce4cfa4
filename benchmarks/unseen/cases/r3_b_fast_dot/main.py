import ctypes
import os

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.abspath("build/libfastdot.so"))
i8 = np.ctypeslib.ndpointer(np.int8, shape=(16, 64), flags="C")
i32 = np.ctypeslib.ndpointer(np.int32, shape=(16, 16), flags="C")
lib.fast_dot.argtypes = [i8, i8, i32]

weights = tf.cast(tf.random.uniform([16, 64], -8, 8, tf.int32), tf.int8).numpy()
inputs = tf.cast(tf.random.uniform([16, 64], -8, 8, tf.int32), tf.int8).numpy()
result = np.zeros((16, 16), np.int32)
lib.fast_dot(inputs, weights, result)
print(tf.nn.softmax(tf.constant(result, tf.float32) / 64)[0, :4].numpy())
