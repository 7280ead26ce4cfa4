import numpy as np
import tensorflow as tf


class Upsampler(tf.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        self.kernel = tf.Variable(tf.random.stateless_normal([4, 4, out_channels, channels], [3, 4]) * 0.1)

    @tf.function
    def __call__(self, x, out_hw):
        shape = tf.concat([[tf.shape(x)[0]], out_hw, [self.kernel.shape[2]]], axis=0)
        return tf.nn.conv2d_transpose(x, self.kernel, shape, strides=2, padding="SAME")


def target_size(low, scale):
    """height and width of the upsampled map; -1 = let the layer find out"""
    return [int(low.shape[1] * scale), int(low.shape[2] * scale)] if scale else [-1, -1]


def main():
    up = Upsampler(8, 3)
    low = tf.constant(np.random.default_rng(1).normal(size=(2, 8, 8, 8)), tf.float32)
    for scale in (2, None):
        size = tf.constant(target_size(low, scale), tf.int32)
        print(scale, up(low, size).shape)


main()
