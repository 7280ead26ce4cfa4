import numpy as np
import tensorflow as tf


def read_sessions(n=200_000, seed=5):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 ** 31 - 1, size=n, dtype=np.int64)


def encode(ids):
    depth = int(ids.max()) + 1
    return tf.one_hot(ids, depth, dtype=tf.float32)


def mean_profile(ids):
    encoded = encode(ids)
    return tf.reduce_mean(encoded, axis=0)


if __name__ == "__main__":
    ids = read_sessions()
    print("ids", ids[:5], "max", ids.max())
    profile = mean_profile(ids)
    print(profile.shape)
