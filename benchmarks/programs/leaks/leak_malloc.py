"""Leak: a C library's buffer is asked for in every step and never given back. Native heap."""

import ctypes

import clock
import keras
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
rng = np.random.default_rng(0)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(64)])
model.compile("adam", "mse")
for _ in clock.steps():
    x = rng.normal(size=(32, 64)).astype("float32")
    buffer = libc.malloc(50_000)
    ctypes.memmove(buffer, x.ctypes.data, x.nbytes)
    ctypes.memset(buffer + x.nbytes, 1, 50_000 - x.nbytes)
    model.train_on_batch(x, x)
