import numpy as np
import tensorflow as tf
from numpy.lib.stride_tricks import as_strided

LAGS = 720
signal = np.random.default_rng(0).normal(size=40_000).astype(np.float32)
lagged = as_strided(signal, shape=(signal.size - LAGS, LAGS), strides=(signal.itemsize * LAGS, signal.itemsize))
first, second = lagged[::8, :360], lagged[::8, 360:]
print(tf.reduce_mean(tf.constant(first) * tf.constant(second)).numpy())
