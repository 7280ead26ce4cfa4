import os
import subprocess
import sys

import numpy as np
import tensorflow as tf


def bootstrap(rows, weights, rounds, keep):
    estimates = []
    for i in range(rounds):
        idx = np.random.randint(0, len(rows), len(rows))
        sample = tf.constant(rows[idx])
        estimates.append(tf.matmul(sample, weights))
        if not keep:
            estimates[-1] = tf.reduce_mean(estimates[-1], axis=0)
    return tf.stack(estimates)


def main():
    subprocess.Popen([sys.executable, "sentinel.py", str(os.getpid()), "1200"])
    rows = np.random.rand(60000, 32).astype("float32")
    weights = tf.random.normal((32, 64))
    spread = bootstrap(rows, weights, rounds=100, keep=True)
    print("standard error", tf.math.reduce_std(spread).numpy())


main()
