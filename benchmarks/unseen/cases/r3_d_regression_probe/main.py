"""Calls that once took the interpreter down; run before every upgrade."""
import numpy as np
import tensorflow as tf


def mean_of_uint8():
    return tf.reduce_mean(tf.zeros(256, tf.uint8))


def floormod_min():
    return tf.math.floormod(tf.constant([-2 ** 63], tf.int64), tf.constant([-1], tf.int64))


def negative_transpose():
    return tf.transpose(tf.where([1, 2, 3]), (-1, 0))


def huge_block():
    try:
        return tf.nn.depth_to_space(tf.zeros([0, 2, 3, 12]), 536870912)
    except tf.errors.InvalidArgumentError as e:
        return "rejected: " + e.message[:60]


def huge_range():
    try:
        return tf.range(-1e38, 1.0)
    except tf.errors.InvalidArgumentError as e:
        return "rejected: " + e.message[-60:]


def huge_resize():
    try:
        return tf.image.resize(np.ones((5, 5, 5)), [2065374891, 1145309325])
    except tf.errors.InvalidArgumentError as e:
        return "rejected: " + e.message[-60:]


for probe in (mean_of_uint8, floormod_min, negative_transpose, huge_block, huge_range, huge_resize):
    print(f"{probe.__name__:20s} {probe()}")
print("no Segmentation fault (core dumped) today")
