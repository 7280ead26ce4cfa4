"""Calls a healthy op many times, says how long that took, and then one that writes too far.

python op_sanitize.py LIBRARY STEPS [healthy]"""

import sys
import time

import tensorflow as tf

ops = tf.load_op_library(sys.argv[1])
values = tf.random.normal([64, 1024])
began = time.perf_counter()
for _ in range(int(sys.argv[2])):
    ops.twice_right(values)
print("loop", time.perf_counter() - began, flush=True)
if "healthy" not in sys.argv:
    ops.twice_too_far(tf.constant([1.0] * 10))
