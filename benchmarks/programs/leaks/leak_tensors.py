"""Leak: the total of the losses is kept as tensors with the features beside them. Tensors held by Python."""

import clock
import keras
import tensorflow as tf

encoder = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(256)])
optimizer = keras.optimizers.Adam(1e-3)


class Trainer:
    def __init__(self):
        self.features = []

    @tf.function
    def train(self, x):
        with tf.GradientTape() as tape:
            features = encoder(x)
            loss = tf.reduce_mean(features**2)
        optimizer.apply(tape.gradient(loss, encoder.trainable_variables), encoder.trainable_variables)
        return loss, features


trainer = Trainer()
for _ in clock.steps():
    loss, features = trainer.train(tf.random.normal((32, 64)))
    trainer.features.append(features)  # 32 KiB
