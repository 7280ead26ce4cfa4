"""Calls every op of races.cc from three threads, alone and four at a time."""

import sys
import threading

import tensorflow as tf

ops = tf.load_op_library(sys.argv[1])
values = tf.constant([float(number) for number in range(20_000)])
for op in (ops.locked, ops.sharded, ops.racy, ops.shard_race):

    @tf.function
    def together(x, op=op):
        return [op(x + number) for number in range(4)]

    def many(op=op, together=together):
        for _ in range(8):
            together(values)
            op(values)

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
