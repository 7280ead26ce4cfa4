import ctypes
import os

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libnms.so"))
lib.suppress.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_void_p]
lib.suppress.restype = ctypes.c_int


def suppress(boxes, threshold):
    boxes = np.ascontiguousarray(boxes, np.float32)
    keep = np.zeros(len(boxes), np.int32)
    n = lib.suppress(boxes.ctypes.data, len(boxes), float(threshold), keep.ctypes.data)
    return keep[:n]


@tf.function
def detect(boxes):
    return tf.numpy_function(suppress, [boxes, 0.5], tf.int32)


def main():
    frames = [
        [[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]],
        [[5, 5, 9, 9], [40, 40, 60, 60]],
        [[0, 0, 4, 4], [12, 12, 12, 18], [30, 30, 33, 33]],
    ]
    for number, boxes in enumerate(frames):
        print("frame", number, "keeps", detect(tf.constant(boxes, tf.float32)).numpy(), flush=True)


main()
