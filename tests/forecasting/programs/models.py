"""Models to be forecast, good ones and bad ones."""

from __future__ import annotations

import os

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def compiled(model, loss="mse", **more):
    model.compile("adam", loss, **more)
    return model


def images():
    """Some hundred kilobytes of activations for each example."""
    picture = keras.Input((64, 64, 3), name="picture")
    inner = picture
    for filters in (16, 32):
        inner = layers.Conv2D(filters, 3, padding="same", activation="relu")(inner)
    output = layers.Dense(10)(layers.GlobalAveragePooling2D()(inner))
    return compiled(keras.Model(picture, output), keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def heavy():
    """400 MB of weights."""
    numbers = keras.Input((10_000,))
    return compiled(keras.Model(numbers, layers.Dense(10_000)(numbers)))


def sentences():
    """Of no fixed length."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    inner = layers.Embedding(1000, 16)(tokens)
    return compiled(keras.Model(tokens, layers.Dense(1)(layers.GlobalAveragePooling1D()(inner))))


def two_inputs():
    left, right = keras.Input((8,), name="left"), keras.Input((4,), dtype="int32", name="right")
    embedded = layers.Flatten()(layers.Embedding(50, 4)(right))
    joined = layers.Concatenate()([left, embedded])
    outputs = {"small": layers.Dense(1)(joined), "classes": layers.Dense(5)(joined)}
    losses = {"small": "mse", "classes": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    return compiled(keras.Model([left, right], outputs), losses)


class OwnStep(keras.Model):
    """Declares no inputs, and takes no labels."""

    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(8)

    def call(self, x):
        return self.inner(x)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(data)))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


def own_step():
    model = OwnStep()
    model.compile("adam")
    return model


def not_compiled():
    return keras.Sequential([keras.Input((4,)), layers.Dense(2)])


def with_a_daemon():
    """Leaves a process behind that has a session of its own."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execlp("sleep", "sleep", os.environ["DAEMON_MARK"])
        os._exit(0)
    os.wait()
    return not_compiled()


def no_model():
    return 42


def broken():
    raise RuntimeError("the file with the vocabulary is missing")


def batches(batch):
    values = np.random.default_rng(0).random((4 * batch, 64, 64, 3), "float32")
    return tf.data.Dataset.from_tensor_slices((values, np.zeros(4 * batch, "int32"))).batch(batch).repeat()


def no_batches(batch):
    return [batch]
