"""Claim: a bug in a custom op crashes in that op.
Reality: half true. A heap overflow dies after the op has done its work (SIGABRT or SIGSEGV); a C++ exception is
SIGSEGV in libpython (called eagerly) or an abort (in a tf.function); use after free and a forgotten output are silent.
"""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import tensorflow as tf
from endings import cannot_show, ending

SOURCE = Path(__file__).with_name("custom_ops.cc")


def bugs():
    return tf.load_op_library("./custom_ops.so")


def heap_overflow():
    for _ in range(200):
        bugs().bug_overflow(x=tf.zeros([200]))
        [str(i) * 50 for i in range(1000)]


def exception_eager():
    bugs().bug_exception(x=tf.zeros([8]))


def exception_in_function():
    op = bugs().bug_exception

    @tf.function
    def both(x):  # two ops, so that one of them goes to another thread
        return op(x=x) + op(x=x + 1)

    both(tf.zeros([8]))


def use_after_free():
    op, batches = bugs().bug_use_after_free, [np.full(1000, i, "float32") for i in range(20)]
    results = [op(x=tf.constant(batch) + 0).numpy()[0] for batch in batches]
    print("wrong", sum(result != i for i, result in enumerate(results[1:])), "of", len(results) - 1)


def forgotten_output():
    print("shape", bugs().bug_no_output(x=tf.zeros([200])).shape)


def forgotten_output_in_function():
    tf.function(bugs().bug_no_output)(x=tf.zeros([200]))


def main():
    if not shutil.which("g++"):
        cannot_show("g++ is not installed")
    flags = [*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()]
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", "custom_ops.so", SOURCE, *flags], check=True)
    jobs = heap_overflow, exception_eager, exception_in_function, use_after_free, forgotten_output
    for job in (*jobs, forgotten_output_in_function):
        end = ending(job)
        said = [line for line in end.text.splitlines() if line.startswith(("the op", "wrong", "shape"))]
        print(f"{job.__name__}: {end.how}", *said[:1])


if __name__ == "__main__":
    main()
