"""Linear regression with a hand-written optimiser that calls the update kernel directly."""
import numpy as np
import tensorflow as tf


class FastSGD:
    """SGD without Keras overhead."""

    def __init__(self, lr):
        self.lr = tf.constant(lr, tf.float32)

    def apply(self, grads, variables):
        for g, v in zip(grads, variables):
            g = tf.cast(tf.clip_by_norm(g, 5.0), tf.float32)
            tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=self.lr, delta=g)


class Regressor(tf.Module):
    def __init__(self, n_features):
        super().__init__()
        self.w = tf.Variable(tf.zeros([n_features], tf.float32), name="w")
        # the intercept is large, keep it in double precision
        self.b = tf.Variable(tf.zeros([1], tf.float64), name="b")

    def __call__(self, x):
        return tf.cast(tf.linalg.matvec(x, self.w), tf.float64) + self.b


def train(model, x, y, opt, steps):
    for step in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        variables = [model.w, model.b]
        opt.apply(tape.gradient(loss, variables), variables)
        print("step", step, float(loss))


if __name__ == "__main__":
    rng = np.random.default_rng(5)
    x = rng.normal(size=(128, 6)).astype("float32")
    y = x @ rng.normal(size=6) + 1e4
    train(Regressor(6), tf.constant(x), tf.constant(y), FastSGD(0.05), 20)
