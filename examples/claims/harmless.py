"""Claim: impossible reshapes, gigantic tensors, layers that lie about their shape and ragged data crash TensorFlow.
Reality: no. The reshape is valid, the gigantic tensor raises, the layer is saved without complaint, ragged data raise.
"""

import keras
import tensorflow as tf


class Liar(keras.layers.Layer):
    def call(self, x):
        return x

    def compute_output_shape(self, shape):
        return (*shape[:-1], 99)


def reshape():
    return tf.reshape(tf.zeros([100, 100]), [1000, 10]).shape


def gigantic():
    return tf.zeros([10**15])


def lying_layer():
    keras.Sequential([keras.Input((4,)), Liar()]).save("liar.keras")
    return "saved"


def ragged():
    return tf.data.Dataset.from_tensor_slices([[1], [2, 3]])


def main():
    for job in (reshape, gigantic, lying_layer, ragged):
        try:
            print(f"{job.__name__}: {job()}")
        except Exception as error:
            print(f"{job.__name__}: {type(error).__name__}")


if __name__ == "__main__":
    main()
