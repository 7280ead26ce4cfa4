import numpy as np
import tensorflow as tf

MAX_LEN = 2 ** 40


def sentences(n=12, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield rng.integers(1, 100, size=rng.integers(3, 9)).astype("int32")


def make_dataset():
    ds = tf.data.Dataset.from_generator(sentences, output_signature=tf.TensorSpec([None], tf.int32))
    ds = ds.filter(lambda ids: tf.size(ids) > 2)
    return ds.padded_batch(4, padded_shapes=[MAX_LEN]).prefetch(2)


def main():
    embed = tf.Variable(tf.random.stateless_normal([100, 4], [0, 0]))
    for batch in make_dataset():
        vectors = tf.gather(embed, batch)
        print(batch.shape, vectors.shape)


main()
