import ctypes
import os

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.abspath("build/libhist.so"))
image = tf.cast(tf.random.uniform([512, 512], 0, 256, tf.int32), tf.uint8).numpy()
bins = np.zeros(256, np.int64)
lib.histogram(image.ctypes.data, image.size, bins.ctypes.data)
print(tf.reduce_max(bins).numpy())
