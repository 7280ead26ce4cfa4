import numpy as np
import tensorflow as tf


class Histogram2D:
    """Adds the weights of detected pairs to their bins."""

    def __init__(self, bins):
        self.bins = bins
        self.total = tf.Variable(tf.zeros([bins]))

    def add(self, pairs, weights):
        # pairs: [events, 2] bin numbers, weights: [events, 2]
        indices = tf.cast(pairs, tf.int32)[..., tf.newaxis]
        flat = tf.reshape(weights, [-1]) if len(pairs) == 0 else weights
        self.total.assign_add(tf.scatter_nd(indices, flat, [self.bins]))


def spills():
    rng = np.random.default_rng(6)
    for n in (3, 5, 0, 2):
        yield rng.integers(0, 8, size=(n, 2)), rng.random((n, 2)).astype("float32")


def main():
    hist = Histogram2D(8)
    for pairs, weights in spills():
        hist.add(pairs, weights)
        print(len(pairs), float(tf.reduce_sum(hist.total)))


main()
