"""Regress the value of a basket from pooled item vectors."""
import os

import tensorflow as tf

from baskets import ITEMS, dataset

pool_ops = tf.load_op_library(os.path.abspath("build/pool_vectors.so"))


class BasketModel(tf.keras.Model):
    def __init__(self, items, width):
        super().__init__()
        self.table = self.add_weight(shape=(items, width), initializer="normal", trainable=False)
        self.hidden = tf.keras.layers.Dense(16, activation="relu")
        self.value = tf.keras.layers.Dense(1)

    def call(self, ids):
        pooled = pool_ops.pool_vectors(self.table, ids)
        return self.value(self.hidden(pooled))


@tf.function
def train_step(model, optimizer, ids, spent):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(ids)[:, 0] - spent))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def main():
    model = BasketModel(ITEMS, 24)
    optimizer = tf.keras.optimizers.Adam()
    for step, (ids, spent) in enumerate(dataset(4000, batch=200)):
        loss = train_step(model, optimizer, ids, spent)
        print("step", step, "loss %.4f" % float(loss), flush=True)


if __name__ == "__main__":
    main()
