"""Cross-validate a ridge regression; the folds are scored in parallel by our extension."""
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, "build")
import fanout


def housing(rows, cols):
    rng = np.random.default_rng(21)
    x = rng.normal(size=(rows, cols)).astype(np.float32)
    return x, (x @ rng.normal(size=(cols, 1)) + 0.1 * rng.normal(size=(rows, 1))).astype(np.float32)


class CrossValidation:
    def __init__(self, x, y, folds):
        self.parts = list(zip(np.array_split(x, folds), np.array_split(y, folds)))

    def score(self, job):
        fold, strength = job
        train = [part for i, part in enumerate(self.parts) if i != fold]
        x = tf.concat([p[0] for p in train], axis=0)
        y = tf.concat([p[1] for p in train], axis=0)
        weights = tf.linalg.lstsq(x, y, l2_regularizer=strength)
        held_x, held_y = self.parts[fold]
        return float(tf.reduce_mean(tf.square(held_x @ weights - held_y)))


def main():
    x, y = housing(2000, 10)
    folds = CrossValidation(x, y, folds=5)
    strengths = [0.01, 1.0, 100.0]
    print("warm-up", folds.score((0, 1.0)), flush=True)
    jobs = [(fold, strength) for strength in strengths for fold in range(5)]
    errors = fanout.map(folds.score, jobs, 2)
    for strength, row in zip(strengths, np.array(errors).reshape(len(strengths), 5)):
        print("strength %g: error %.5f" % (strength, row.mean()))


if __name__ == "__main__":
    main()
