import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libquant.so"))
lib.quantize.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_int]

PLAN = {"conv": 8, "proj": 4, "head": 6}


def quantize(name, variable):
    values = np.ascontiguousarray(variable.numpy())
    codes = np.zeros(values.size, np.int8)
    lib.quantize(values.ctypes.data, codes.ctypes.data, values.size, PLAN[name])
    return name, codes


def build():
    return tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)),
        tf.keras.layers.Conv2D(4, 3, name="conv"),
        tf.keras.layers.GlobalMaxPooling2D(),
        tf.keras.layers.Dense(8, name="proj"),
        tf.keras.layers.Dense(3, name="head"),
    ])


def main():
    model = build()
    jobs = [(layer.name, layer.kernel) for layer in model.layers if layer.name in PLAN]
    with ThreadPoolExecutor(1) as pool:
        for name, codes in pool.map(lambda job: quantize(*job), jobs):
            print(name, codes.size, codes.min(), codes.max(), flush=True)


main()
