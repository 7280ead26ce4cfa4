"""Healthy: an average of the weights and every loss as a Python float in a list and in a log file."""

import tempfile

import clock
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(32, "tanh"), keras.layers.Dense(1)])
optimizer = keras.optimizers.AdamW(1e-3)
average = [weight.numpy() for weight in model.trainable_variables]
losses = []


@tf.function(reduce_retracing=True)
def train(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


with tempfile.TemporaryFile("w") as log:
    for step in clock.steps():
        x = rng.normal(size=(32, 20)).astype("float32")
        losses.append(float(train(tf.constant(x), tf.constant(x.sum(1, keepdims=True)))))
        average = [0.99 * old + 0.01 * new.numpy() for old, new in zip(average, model.trainable_variables)]
        log.write(f"{step} {losses[-1]}\n")
print(np.mean(losses[-100:]))
