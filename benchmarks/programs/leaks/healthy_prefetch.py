"""Healthy: the pipeline is a little faster than the steps, so that a shuffle and a prefetch buffer fill slowly."""

import clock
import numpy as np
import tensorflow as tf


def samples():
    rng = np.random.default_rng(0)
    while True:
        yield rng.normal(size=(64, 128)).astype("float32")  # 32 KiB


data = tf.data.Dataset.from_generator(samples, output_signature=tf.TensorSpec((64, 128), tf.float32))
data = data.shuffle(2000).batch(8).prefetch(700)  # up to 64 MiB and 180 MiB
weights = tf.Variable(tf.random.normal((128, 256), stddev=0.05))
back = tf.Variable(tf.random.normal((256, 128), stddev=0.05))
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        code = tf.nn.relu(tf.einsum("bsd,de->bse", batch, weights))
        for _ in range(4):
            code = tf.nn.relu(tf.matmul(code, tf.matmul(back, weights)))
        loss = tf.reduce_mean((tf.einsum("bse,ed->bsd", code, back) - batch) ** 2)
    variables = [weights, back]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for number, batch in zip(clock.steps(), data):
    loss = step(batch)
    if number % 500 == 0:
        print(number, float(loss), flush=True)
