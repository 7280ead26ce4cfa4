"""Quantisation-aware training: every learned parameter passes through fake quant."""
import numpy as np
import tensorflow as tf


def fake_quant(value, bits=8):
    """Per-channel fake quantisation over the last axis."""
    axes = list(range(len(value.shape) - 1))
    lo = tf.reduce_min(value, axis=axes) - 1e-3
    hi = tf.reduce_max(value, axis=axes) + 1e-3
    return tf.quantization.fake_quant_with_min_max_vars_per_channel(value, lo, hi, num_bits=bits)


class QuantDense(tf.keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel")
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, x):
        return tf.matmul(x, fake_quant(tf.convert_to_tensor(self.kernel))) + \
            fake_quant(tf.convert_to_tensor(self.bias))


class QuantTemperature(tf.keras.layers.Layer):
    """logits / T with a learned scalar T."""

    def build(self, input_shape):
        self.temperature = self.add_weight(shape=(), initializer="ones", name="T")

    def call(self, logits):
        return logits / fake_quant(tf.convert_to_tensor(self.temperature))


def main():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(64, 10)).astype("float32")
    hidden = QuantDense(16)
    print("hidden", hidden(x).shape)
    head, scale = QuantDense(4), QuantTemperature()
    logits = head(tf.nn.relu(hidden(x)))
    print("logits", logits.shape)
    probs = tf.nn.softmax(scale(logits))
    print("probs", probs.shape)


main()
