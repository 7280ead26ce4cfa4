"""Calls every op of memory.cc; the last call ends the program."""

import sys

import tensorflow as tf

ops = tf.load_op_library(sys.argv[1])
values = tf.constant([float(number) for number in range(10)])
ops.healthy(values)
ops.write_past(values)  # WritePast
ops.read_past(values)  # ReadPast
ops.used_after_free(values)  # UsedAfterFree
ops.freed_twice(values)  # FreedTwice
ops.stack_array(values)  # StackArray
ops.unset_output(values)  # UnsetOutput
ops.healthy(ops.sum_not_begun(values))  # SumNotBegun
ops.overflowing(values)  # Overflowing
print("healthy to the end", flush=True)
if sys.argv[2] == "recursive":
    ops.recursive(values)  # Recursive
for _ in range(3):
    ops.leaky(values)
