import os

import tensorflow as tf

_ops = tf.load_op_library(os.path.abspath("build/bucketize_ids.so"))


class IdFeature(tf.keras.layers.Layer):
    """Embeds a sparse id; the table has one row per `per_bucket` expected ids."""

    def __init__(self, expected_ids, per_bucket=1000, width=8, **kwargs):
        super().__init__(**kwargs)
        self.rows = expected_ids // per_bucket
        self.table = tf.keras.layers.Embedding(self.rows + 1, width)

    def call(self, ids):
        slots = _ops.bucketize_ids(ids, tf.constant(self.rows, tf.int64))
        return self.table(slots)
