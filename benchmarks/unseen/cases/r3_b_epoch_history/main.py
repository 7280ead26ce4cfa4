"""Train a next-value model on synthetic load curves and keep statistics of each step."""
import numpy as np
import tensorflow as tf


class StepHistory:
    """Loss and activations of each step, for the report at the end."""

    def __init__(self):
        self.losses = []
        self.activations = []

    def add(self, loss, activations):
        self.losses.append(loss)
        self.activations.append(activations)

    def report(self):
        spread = [float(tf.math.reduce_std(a)) for a in self.activations]
        return float(tf.reduce_mean(self.losses)), max(spread)


class LoadModel(tf.keras.Model):
    def __init__(self, width):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(width, activation="relu")
        self.value = tf.keras.layers.Dense(1)

    def call(self, x):
        activations = self.hidden(x)
        return self.value(activations), activations


@tf.function
def step(model, optimizer, x, y):
    with tf.GradientTape() as tape:
        guess, activations = model(x)
        loss = tf.reduce_mean(tf.square(guess - y))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, activations


def curves(count, length):
    rng = np.random.default_rng(30)
    data = np.cumsum(rng.normal(size=(count, length + 1)), axis=1).astype(np.float32)
    return data[:, :-1], data[:, -1:]


def main():
    x, y = curves(4096, 48)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(1024).repeat(100)
    model, optimizer, history = LoadModel(1024), tf.keras.optimizers.Adam(), StepHistory()
    for number, (bx, by) in enumerate(data):
        loss, activations = step(model, optimizer, bx, by)
        history.add(loss, activations)
        if number % 25 == 0:
            print("step", number, "loss %.3f" % float(loss), flush=True)
    print("mean loss %.3f, largest spread %.3f" % history.report())


if __name__ == "__main__":
    main()
