import numpy as np
import tensorflow as tf

HASH_BITS = 62


def hashed_column(values, salt):
    """one row per request, column = hash of the value"""
    size = 2 ** HASH_BITS
    cols = [(int(v) * 0x9E3779B97F4A7C15 + salt) % size for v in values]
    indices = np.stack([np.arange(len(values)), cols], axis=1).astype("int64")
    return tf.SparseTensor(indices, tf.ones([len(values)]), [len(values), size])


class FeatureCross:
    def __init__(self, names):
        self.names = names

    def __call__(self, table):
        columns = [hashed_column(table[name], salt) for salt, name in enumerate(self.names)]
        return tf.sparse.concat(axis=1, sp_inputs=columns)


def main():
    table = {"user": [3], "item": [10]}  # one request
    wide = FeatureCross(["user", "item"])(table)
    print(wide.dense_shape.numpy(), wide.values.shape)


main()
