"""Leak: a tf.function is given the number of the step as a Python int, and is traced anew in every step."""

import clock
import numpy as np
import tensorflow as tf

weights = tf.Variable(tf.random.normal((64, 64), stddev=0.1))
rng = np.random.default_rng(0)


@tf.function
def train(batch, step):
    rate = 0.1 / (1 + 0.001 * step)
    with tf.GradientTape() as tape:
        hidden = batch
        for _ in range(5):
            hidden = tf.nn.tanh(tf.matmul(hidden, weights))
        loss = tf.reduce_mean((hidden - batch) ** 2)
    weights.assign_sub(rate * tape.gradient(loss, weights))
    return loss


for step in clock.steps():
    loss = train(tf.constant(rng.normal(size=(32, 64)), tf.float32), step)
