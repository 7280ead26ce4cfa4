import os
import subprocess
import time

import numpy as np
import tensorflow as tf


class NearestNeighbours:
    def __init__(self, bank):
        self.bank = tf.constant(bank)

    @tf.function(reduce_retracing=True)
    def search(self, queries, k=5):
        distances = tf.norm(queries[:, None] - self.bank[None], axis=-1)
        return tf.math.top_k(-distances, k).indices


def submit_wrapper(pid):
    # stands for "sbatch --signal=USR1@30"
    subprocess.Popen(["sh", "-c", f"sleep 6; kill -USR1 {pid}"])


def main():
    submit_wrapper(os.getpid())
    rng = np.random.default_rng(8)
    index = NearestNeighbours(rng.random((2000, 32), dtype=np.float32))
    start = time.time()
    for chunk in range(100000):
        found = index.search(rng.random((64, 32), dtype=np.float32))
        if chunk % 200 == 0:
            print(chunk, found.shape, f"{time.time() - start:.1f}s", flush=True)


main()
