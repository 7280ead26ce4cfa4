import sys

import numpy as np
import tensorflow as tf

EXPECTED_ROWS = 5000


def load_features():
    raw = tf.random.stateless_normal((4861, 12), seed=(1, 2))
    keep = tf.reduce_all(tf.math.is_finite(raw), axis=1)
    return tf.boolean_mask(raw, keep)


def missing_rows(features):
    return EXPECTED_ROWS - int(features.shape[0])


def main():
    features = load_features()
    lost = missing_rows(features)
    print(f"{features.shape[0]} rows loaded, {lost} missing", file=sys.stderr)
    print("column means", np.round(features.numpy().mean(axis=0), 3))
    return lost


if __name__ == "__main__":
    sys.exit(main())
