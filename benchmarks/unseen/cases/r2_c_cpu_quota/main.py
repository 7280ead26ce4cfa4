import numpy as np
import tensorflow as tf


@tf.function
def power_iteration(matrix, steps):
    v = tf.ones((tf.shape(matrix)[0], 1))
    for _ in tf.range(steps):
        v = tf.linalg.normalize(tf.matmul(matrix, v))[0]
    return tf.squeeze(tf.matmul(v, tf.matmul(matrix, v), transpose_a=True))


def main():
    rng = np.random.default_rng(11)
    for site in range(50):
        a = rng.normal(size=(1200, 1200)).astype("float32")
        cov = tf.constant(a @ a.T / 1200)
        print("site", site, "largest eigenvalue", power_iteration(cov, 2000).numpy(), flush=True)


main()
