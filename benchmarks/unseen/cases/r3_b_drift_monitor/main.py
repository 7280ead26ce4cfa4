"""Serve a scoring model and watch whether its inputs drift."""
import os

import numpy as np
import tensorflow as tf

monitor_ops = tf.load_op_library(os.path.abspath("build/drift.so"))


class Scorer(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal([width, 1], stddev=0.1))

    @tf.function(input_signature=[tf.TensorSpec([None, 200], tf.float32)])
    def __call__(self, rows):
        drift = monitor_ops.drift(rows)
        return tf.sigmoid(rows @ self.kernel), drift


class Requests:
    """Replays a day of requests, busier towards the evening."""

    def __init__(self, width, seed):
        self.width = width
        self.rng = np.random.default_rng(seed)

    def hours(self):
        for hour in range(8, 20):
            rows = 2000 + 400 * (hour - 8)
            shift = 0.02 * (hour - 8)
            yield hour, (self.rng.normal(size=(rows, self.width)) + shift).astype(np.float32)


def serve(scorer, requests):
    accepted = 0
    for hour, rows in requests.hours():
        scores, drift = scorer(tf.constant(rows))
        accepted += int(tf.math.count_nonzero(scores > 0.5))
        print("%02d:00 %5d requests, drift %.4f" % (hour, len(rows), float(drift)), flush=True)
    return accepted


def main():
    scorer = Scorer(width=200)
    print("accepted", serve(scorer, Requests(200, seed=41)))


if __name__ == "__main__":
    main()
