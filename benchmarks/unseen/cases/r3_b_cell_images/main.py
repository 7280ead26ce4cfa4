"""Segment cell images; the stack is too large for memory and stays on disk."""
import os
import tempfile

import numpy as np
import tensorflow as tf

import imaging

SIDE = 96


def acquire(path, count):
    rng = np.random.default_rng(12)
    np.save(path, rng.gamma(2.0, 40.0, size=(count, SIDE, SIDE)).astype(np.float32))


def examples(stack):
    for image in stack:
        image = imaging.normalise(image)
        yield image[..., None], (image > 1.0).astype(np.float32)[..., None]


def build():
    return tf.keras.Sequential([
        tf.keras.layers.Input((SIDE, SIDE, 1)),
        tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(1, 1, activation="sigmoid"),
    ])


def main():
    path = os.path.join(tempfile.mkdtemp(), "cells.npy")
    acquire(path, 64)
    stack = imaging.open_stack(path, SIDE)
    spec = tf.TensorSpec((SIDE, SIDE, 1))
    data = tf.data.Dataset.from_generator(lambda: examples(stack), output_signature=(spec, spec)).batch(8)
    model = build()
    model.compile("adam", "binary_crossentropy")
    model.fit(data, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
