import numpy as np
import tensorflow as tf


def hash_buckets(bits):
    return 1 << bits


class HashedText(tf.keras.Model):
    def __init__(self, bits, width):
        super().__init__()
        self.buckets = hash_buckets(bits)
        self.table = tf.Variable(tf.zeros((self.buckets, width)), name="word_table")
        self.head = tf.keras.layers.Dense(1)

    def call(self, words):
        ids = tf.strings.to_hash_bucket_fast(words, self.buckets)
        return self.head(tf.reduce_mean(tf.nn.embedding_lookup(self.table, ids), axis=1))


def main():
    words = tf.constant(np.array([["good", "film"], ["bad", "cast"]]))
    model = HashedText(bits=36, width=256)
    print(model(words).numpy())


main()
