import numpy as np
import tensorflow as tf

HASH_SPACE = 2 ** 62
EMB = 8


def hash_rows(user_ids):
    """One row per user; rows are addressed with a 62 bit hash."""
    rows = []
    for i, user in enumerate(user_ids):
        rows.append([hash(("user", user)) % 1000, i % 4])
    return np.array(sorted(rows), dtype=np.int64)


class WideTower(tf.keras.layers.Layer):
    def build(self, _):
        self.w = self.add_weight(shape=(4, EMB), initializer="ones", name="w")

    def call(self, features):
        return tf.sparse.sparse_dense_matmul(features, self.w)


def main():
    indices = hash_rows(range(20))
    features = tf.SparseTensor(indices, tf.ones([20]), dense_shape=[HASH_SPACE, 4])
    tower = WideTower()
    tower.build(None)
    out = tower.call(features)
    print(out.shape)


if __name__ == "__main__":
    main()
