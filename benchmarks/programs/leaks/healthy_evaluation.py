"""Healthy: small training steps, and every so often an evaluation in large batches whose predictions are gathered."""

import clock
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
inputs = keras.Input((64, 64, 1))
hidden = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
outputs = keras.layers.Conv2D(1, 3, padding="same")(hidden)
model = keras.Model(inputs, outputs)
optimizer = keras.optimizers.Adam(1e-3)


@tf.function
def train(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(batch, training=True) - batch) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


validation = rng.normal(size=(512, 64, 64, 1)).astype("float32")
for step in clock.steps():
    train(tf.constant(rng.normal(size=(4, 64, 64, 1)), tf.float32))
    if step % 250 == 249:
        predictions = [model(validation[at : at + 128]).numpy() for at in range(0, 512, 128)]
        print(step, "error", float(np.mean((np.concatenate(predictions) - validation) ** 2)), flush=True)
