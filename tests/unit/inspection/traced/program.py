"""Was run under faultlens: notes.jsonl is what was remembered of its graphs (TensorFlow 2.21, Keras 3.15)."""

import tensorflow as tf

layers = tf.keras.layers


def scaled(x):
    return 2.0 * tf.linalg.matmul(
        x,
        x,
    )


class Local(layers.Layer):
    def call(self, x):
        return tf.nn.lrn(x)


@tf.function
def inner(x):
    return tf.nn.relu(scaled(x))


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        if tf.reduce_sum(x) > 0:
            y = inner(x)
        else:
            y = tf.exp(x)
        for _ in tf.range(2):
            y = tf.sin(y)
        loss = tf.reduce_mean(
            tf.square(y) - tf.nn.relu(x) + tf.square(x) * 3.0,
            axis=None,
            keepdims=False,
        )
    return tape.gradient(loss, x)


@tf.function
def other(x):
    return tf.nn.relu(x)


step(tf.ones([2, 2]))
other(tf.ones([2]))
model = tf.keras.Sequential(
    [
        layers.Input((4, 4, 2)),
        layers.Conv2D(2, 1),
        layers.BatchNormalization(name="norm"),
        Local(),
        layers.Flatten(),
        layers.Dense(1),
    ]
)
model.compile("sgd", "mse")
model.fit(tf.ones([4, 4, 4, 2]), tf.ones([4, 1]), batch_size=2, verbose=0)
