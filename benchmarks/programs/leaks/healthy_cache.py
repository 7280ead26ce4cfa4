"""Healthy: Dataset.cache() fills during a long first epoch and is read from in all later ones."""

import clock
import keras
import tensorflow as tf


class EndInTime(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if clock.over():
            self.model.stop_training = True


def decoded(seed):
    """As slow as the decoding of an image."""
    image = tf.random.stateless_normal((96, 96, 3), tf.stack([seed, seed]))
    for _ in range(30):
        image = tf.image.resize(tf.image.resize(image, (192, 192)), (96, 96))
    return image, seed % 10


data = tf.data.Dataset.range(6000).map(decoded).cache().shuffle(256).batch(8).prefetch(2)
model = keras.Sequential(
    [
        keras.layers.Conv2D(8, 3, 2, activation="relu"),
        keras.layers.Conv2D(8, 3, 2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=1000, callbacks=[EndInTime()], verbose=2)
