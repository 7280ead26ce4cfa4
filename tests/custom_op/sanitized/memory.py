"""Calls every op of memory.cc; the one that ends its process is called by a child."""

import contextlib
import subprocess
import sys

import tensorflow as tf

ops = tf.load_op_library(sys.argv[1])
values = tf.constant([float(number) for number in range(10)])
if len(sys.argv) > 2:
    ops.recursive(values)  # Recursive
child = subprocess.Popen([sys.executable, __file__, sys.argv[1], "recursive"])
ops.healthy(values)
ops.write_past(values)  # WritePast
ops.read_past(values)  # ReadPast
ops.used_after_free(values)  # UsedAfterFree
ops.freed_twice(values)  # FreedTwice
ops.stack_array(values)  # StackArray
ops.unset_output(values)  # UnsetOutput
ops.healthy(ops.sum_not_begun(values))  # SumNotBegun
ops.overflowing(values)  # Overflowing
with contextlib.suppress(tf.errors.OpError):
    ops.forgetful(values)  # Forgetful
for _ in range(20):  # pointers to some blocks may still lie on a stack
    ops.leaky(values)
child.wait()
print("to the end", flush=True)
