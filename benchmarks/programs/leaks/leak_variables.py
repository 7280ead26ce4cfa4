"""Leak: every step makes a tf.Variable for its noise and keeps it. TensorFlow variables."""

import clock
import tensorflow as tf


class Noisy(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((128, 128)))
        self.noise = []

    def __call__(self, x):
        self.noise.append(tf.Variable(tf.random.normal((128, 128), stddev=0.01)))  # 64 KiB
        return tf.matmul(x, self.weight + self.noise[-1])


model = Noisy()
for _ in clock.steps():
    x = tf.random.normal((64, 128))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - x) ** 2)
    model.weight.assign_sub(0.1 * tape.gradient(loss, model.weight))
