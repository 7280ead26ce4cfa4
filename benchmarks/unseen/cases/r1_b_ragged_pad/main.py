"""Sentiment model over ragged token lists, padded by our own op."""
import os

import numpy as np
import tensorflow as tf

_ops = tf.load_op_library(os.path.abspath("build/pad_tokens.so"))


class PadTokens(tf.keras.layers.Layer):
    def __init__(self, multiple=16, **kwargs):
        super().__init__(**kwargs)
        self.multiple = multiple

    def call(self, ragged):
        return _ops.pad_tokens(ragged.values, ragged.row_splits, multiple=self.multiple)


class Sentiment(tf.keras.Model):
    def __init__(self, vocabulary):
        super().__init__()
        self.pad = PadTokens()
        self.embed = tf.keras.layers.Embedding(vocabulary, 16)
        self.score = tf.keras.layers.Dense(1, activation="sigmoid")

    def call(self, ragged):
        padded = self.pad(ragged)
        return self.score(tf.reduce_mean(self.embed(padded), axis=1))


def reviews(count, longest):
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, longest + 1, size=count)
    lengths[0] = longest
    return tf.RaggedTensor.from_row_lengths(rng.integers(1, 500, size=lengths.sum()).astype(np.int32), lengths)


def main():
    model = Sentiment(500)
    optimizer = tf.keras.optimizers.Adam()
    loss_fn = tf.keras.losses.BinaryCrossentropy()
    for step, longest in enumerate([16, 32, 33, 49, 65, 81] * 4):
        batch = reviews(256, longest)
        labels = tf.cast(batch.row_lengths() % 2, tf.float32)[:, None]
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, model(batch))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        if step % 8 == 0:
            print("step", step, "loss %.4f" % float(loss))


if __name__ == "__main__":
    main()
