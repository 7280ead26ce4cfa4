import ctypes
import os

import tensorflow as tf

lib = ctypes.PyDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libreduce.so"))
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int)
lib.parallel_sum.argtypes = [CALLBACK, ctypes.c_int]
lib.parallel_sum.restype = ctypes.c_double

shards = tf.reshape(tf.range(64, dtype=tf.float64), (8, 8))


@CALLBACK
def shard_sum(index):
    return float(tf.reduce_sum(shards[index]))


print("shard 0:", shard_sum(0), flush=True)
print("total:", lib.parallel_sum(shard_sum, 8))
