import numpy as np
import tensorflow as tf

FULL_SHUFFLE = 2 ** 62  # larger than any dataset


def build_pipeline(features, labels, batch):
    ds = tf.data.Dataset.from_tensor_slices((features, labels))
    ds = ds.shuffle(FULL_SHUFFLE, reshuffle_each_iteration=True)
    return ds.batch(batch).prefetch(tf.data.AUTOTUNE)


class LinearModel(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.w = tf.Variable(tf.zeros([width, 1]))

    def step(self, x, y, lr=0.1):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ self.w - y))
        self.w.assign_sub(lr * tape.gradient(loss, self.w))
        return loss


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 4)).astype("float32")
    y = x @ np.array([[1.0], [2.0], [-1.0], [0.5]], "float32")
    model = LinearModel(4)
    for epoch in range(2):
        for xb, yb in build_pipeline(x, y, 32):
            loss = model.step(xb, yb)
        print("epoch", epoch, float(loss))


main()
