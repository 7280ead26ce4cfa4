"""Looks for hot pixels in RGB frames of several cameras."""
import numpy as np
import tensorflow as tf

from pyramid import MaxPyramid

CAMERAS = {"front": (64, 64), "rear": (48, 40), "cabin": (20, 8)}


def grab(camera, seed=3):
    height, width = CAMERAS[camera]
    rng = np.random.default_rng(seed)
    return tf.constant(rng.random((2, height, width, 3)), tf.float32)


def hot_pixels(levels, threshold=0.99):
    top = levels[-1]
    return int(tf.reduce_sum(tf.cast(tf.reduce_max(top, axis=-1) > threshold, tf.int32)))


def main():
    pyramid = MaxPyramid(levels=3)
    for camera in CAMERAS:
        levels = pyramid(grab(camera))
        print(camera, [tuple(level.shape[1:3]) for level in levels], hot_pixels(levels))


if __name__ == "__main__":
    main()
