import numpy as np
import tensorflow as tf


class SubsampleNet(tf.keras.Model):
    """Keeps one pixel of `keep_every` x `keep_every`."""

    def __init__(self, keep_every):
        super().__init__()
        self.pick = tf.keras.layers.Conv2D(1, 1, strides=keep_every, use_bias=False)
        self.flat = tf.keras.layers.Flatten()

    def call(self, x):
        return self.flat(self.pick(x))


def keep_every_for(side, wanted):
    """only one pixel: any stride beyond the image will do"""
    return side // wanted if wanted > 1 else 2 ** 31


def main():
    image = np.random.default_rng(3).random((1, 16, 16, 1)).astype("float32")
    for wanted in (8, 4, 1):
        net = SubsampleNet(keep_every_for(16, wanted))
        print(wanted, net(image).shape)


main()
