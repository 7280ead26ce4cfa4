"""Simulate int8 storage of all weights of a model, per output channel."""
import numpy as np
import tensorflow as tf


def quant_axis(weight):
    """Channel axis by kind of layer; None means one range for the whole tensor."""
    kind = weight.path.split("/")[-2]
    if weight.path.endswith("bias"):
        return None
    if kind.startswith("depthwise"):
        return -2                # depthwise kernels are [h, w, channels, 1]
    return len(weight.shape) - 1


def simulate_int8(weight):
    value = tf.convert_to_tensor(weight)
    axis = quant_axis(weight)
    if axis is None:
        bound = tf.reduce_max(tf.abs(value))
        return tf.raw_ops.QuantizeAndDequantizeV3(
            input=value, input_min=-bound, input_max=bound, num_bits=8, range_given=True)
    others = [a for a in range(len(value.shape)) if a != axis % len(value.shape)]
    bound = tf.reduce_max(tf.abs(value), axis=others)
    return tf.raw_ops.QuantizeAndDequantizeV3(
        input=value, input_min=-bound, input_max=bound, num_bits=8,
        range_given=True, narrow_range=True, axis=axis)


def build():
    return tf.keras.Sequential([
        tf.keras.layers.Input((16, 16, 3)),
        tf.keras.layers.Conv2D(8, 3, name="conv"),
        tf.keras.layers.DepthwiseConv2D(3, name="depthwise"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4, name="head"),
    ])


def main():
    model = build()
    for weight in model.weights:
        compressed = simulate_int8(weight)
        error = float(tf.reduce_max(tf.abs(compressed - weight)))
        print(f"{weight.path:40s} {weight.shape} error {error:.5f}")
        weight.assign(compressed)


if __name__ == "__main__":
    main()
