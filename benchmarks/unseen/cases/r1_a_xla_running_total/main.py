import numpy as np
import tensorflow as tf


@tf.function(jit_compile=True)
def running_total(patch):
    turned = tf.image.rot90(patch)
    return tf.experimental.numpy.cumsum(turned)


def main():
    rng = np.random.default_rng(21245)
    for index in range(3):
        patch = tf.constant(rng.normal(size=(8, 4, 3)))
        eager = np.cumsum(np.rot90(patch.numpy()))
        total = running_total(patch)
        print(index, float(total[-1]), float(eager[-1]))


main()
