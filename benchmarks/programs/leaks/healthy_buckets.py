"""Healthy: sequences of many lengths, padded in buckets; the step is traced once for each of a handful of shapes."""

import clock
import keras
import numpy as np
import tensorflow as tf


def sentences():
    rng = np.random.default_rng(0)
    while True:
        length = int(np.clip(rng.lognormal(3, 0.7), 3, 250))
        yield rng.integers(1, 5000, length), rng.integers(0, 2)


data = tf.data.Dataset.from_generator(
    sentences, output_signature=(tf.TensorSpec((None,), tf.int64), tf.TensorSpec((), tf.int64))
)
data = data.bucket_by_sequence_length(
    lambda words, label: tf.shape(words)[0],
    bucket_boundaries=[16, 32, 64, 128, 256],
    bucket_batch_sizes=[64, 32, 16, 8, 4, 2],
    pad_to_bucket_boundary=True,
).prefetch(4)
model = keras.Sequential(
    [keras.layers.Embedding(5000, 32), keras.layers.GRU(32), keras.layers.Dense(1, activation="sigmoid")]
)
model.compile("adam", "binary_crossentropy")
for step, (words, labels) in zip(clock.steps(), data):
    loss = model.train_on_batch(words, labels)
    if step % 500 == 0:
        print(step, words.shape, float(loss), flush=True)
