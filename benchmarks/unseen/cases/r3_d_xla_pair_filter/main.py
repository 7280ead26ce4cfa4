"""Pairwise agreement of active cells in an occupancy grid, compiled with XLA."""
import numpy as np
import tensorflow as tf


class PairFilter(tf.keras.layers.Layer):
    """Marks pairs of active cells whose coordinates correlate."""

    def call(self, grid):
        cells = tf.where(grid > 0.0)                       # [n, 2]
        scores = tf.matmul(cells, cells, transpose_b=True)  # [n, n]
        related = tf.cast(scores, tf.bool)
        valid = tf.cast(cells, tf.bool)
        return tf.logical_and(related, valid)


def occupancy(seed, size=8):
    return np.random.default_rng(seed).normal(size=(size, size)).astype("float32")


def main():
    layer = PairFilter()

    @tf.function(jit_compile=True)
    def score(grid):
        return layer(grid)

    for seed in range(20):
        pairs = score(tf.constant(occupancy(seed)))
        print("grid", seed, "pairs", int(tf.math.count_nonzero(pairs)))


if __name__ == "__main__":
    main()
