"""Leak: persistent tapes are kept for a later look at the gradients, and keep all activations. Tensors."""

import clock
import keras
import tensorflow as tf

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(64)])
optimizer = keras.optimizers.SGD(0.01)
tapes = []
for step in clock.steps():
    x = tf.random.normal((32, 64))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean((model(x) - x) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    if step % 2 == 0:
        tapes.append(tape)
