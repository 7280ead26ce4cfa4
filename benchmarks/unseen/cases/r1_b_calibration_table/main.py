import ctypes
import os

import numpy as np
import tensorflow as tf

ROWS, COLS = 8192, 8192
lib = ctypes.CDLL(os.path.abspath("build/libcalib.so"))
lib.calib_load.restype = ctypes.POINTER(ctypes.c_float)
table = np.ctypeslib.as_array(lib.calib_load(ROWS, COLS), shape=(ROWS, COLS))
gain = tf.reduce_mean(tf.constant(table), axis=0)
print(gain.shape)
