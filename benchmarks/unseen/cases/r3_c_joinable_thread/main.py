import ctypes
import os

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libprefetch.so"))
lib.prefetch_open.argtypes = [ctypes.c_char_p]
lib.prefetch_wait.restype = ctypes.c_long


class Prefetcher:
    """Warms the page cache with the next file while the current one is used."""

    def __init__(self, path):
        lib.prefetch_open(path.encode())

    def bytes_read(self):
        return lib.prefetch_wait()


def regression(x, y):
    design = tf.concat([x, tf.ones_like(x[:, :1])], axis=1)
    return tf.linalg.lstsq(design, y)


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")
    prefetcher = Prefetcher(path)
    x = tf.constant(np.random.rand(200, 3))
    solution = regression(x, tf.reduce_sum(x, axis=1, keepdims=True))
    print("coefficients", solution.numpy().ravel().round(3))
    print("prefetched", prefetcher.bytes_read(), "bytes", flush=True)


main()
