"""Trains a small sequence model, and dies inside TensorFlow as soon as a batch of short sequences comes along."""

import numpy as np
import tensorflow as tf

LONGEST = 12
FEATURES = 4


class PackedLSTM(tf.keras.layers.Layer):
    """An LSTM over whole sequences in one kernel. Takes it for granted that all have the full length."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, _shape):
        self.kernel = self.add_weight(shape=(FEATURES + self.units, 4 * self.units), name="kernel")

    def call(self, x):
        steps_first = tf.transpose(x, [1, 0, 2])
        start = tf.zeros([tf.shape(x)[0], self.units])
        peephole = tf.zeros([self.units])
        out = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.constant(LONGEST, tf.int64), x=steps_first, cs_prev=start, h_prev=start, w=self.kernel,
            wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([4 * self.units]))  # fmt: skip
        return out.h[-1]


def batches():
    rng = np.random.default_rng(0)
    for length in [LONGEST] * 5 + [LONGEST - 3]:  # the last batch is shorter
        yield rng.normal(size=(8, length, FEATURES)).astype("float32"), rng.normal(size=(8, 1)).astype("float32")


def main():
    model = tf.keras.Sequential([tf.keras.Input((None, FEATURES)), PackedLSTM(16), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_generator(
        batches,
        output_signature=(tf.TensorSpec((None, None, FEATURES)), tf.TensorSpec((None, 1))),
    )
    model.fit(data, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
