"""Claim: a full /dev/shm, or a mapped file that somebody truncates, crashes the program.
Reality: true, by SIGBUS; and the fault can lie inside one of TensorFlow's own kernels, which read the map directly.
"""

import os

import numpy as np
import tensorflow as tf
from endings import ending, need_small_disks, small_disk


def shared_memory_full():
    batches = np.memmap(small_disk(2) / "batches", "float32", "w+", shape=(8, 250_000))
    for row in batches:
        row[:] = tf.ones(250_000)


def truncated_while_numpy_reads():
    np.ones(1_000_000, "float32").tofile("features")
    mapped = np.memmap("features", "float32", "r")
    os.truncate("features", 4096)
    tf.constant(mapped)


def truncated_while_a_kernel_reads():
    np.ones((64, 4096), "float32").tofile("rows")
    rows = np.memmap("rows", "float32", "r").reshape(64, 4096)
    dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=tf.TensorSpec([4096]))
    sums = iter(dataset.map(tf.reduce_sum))
    print(float(next(sums)))
    os.truncate("rows", 16384)
    list(sums)


def main():
    for job in (truncated_while_numpy_reads, truncated_while_a_kernel_reads):
        print(f"{job.__name__}: {ending(job).how}")
    need_small_disks()
    print(f"{shared_memory_full.__name__}: {ending(shared_memory_full).how}")


if __name__ == "__main__":
    main()
