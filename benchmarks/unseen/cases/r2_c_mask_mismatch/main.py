import numpy as np
import tensorflow as tf


def overlay(image, mask):
    image, mask = image.numpy(), mask.numpy()
    alpha = mask[..., None] / 255.0
    return (image * (1 - alpha) + np.array([1.0, 0.0, 0.0]) * alpha).astype("float32")


def pairs():
    rng = np.random.default_rng(13)
    for i in range(12):
        size = (48, 64) if i != 9 else (64, 48)
        yield rng.random((48, 64, 3), dtype=np.float32), rng.integers(0, 255, size).astype("float32")


spec = (tf.TensorSpec((48, 64, 3), tf.float32), tf.TensorSpec((None, None), tf.float32))
ds = tf.data.Dataset.from_generator(pairs, output_signature=spec)
ds = ds.map(lambda i, m: tf.py_function(overlay, [i, m], tf.float32), num_parallel_calls=2).batch(4)
for batch in ds:
    print(batch.shape, tf.reduce_mean(batch).numpy())
