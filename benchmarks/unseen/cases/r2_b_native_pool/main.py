"""Score customers in blocks that live in memory taken from the C allocator."""
import numpy as np
import tensorflow as tf

from pool import Block


def score_group(model, rows):
    block = Block.allocate(*rows.shape)
    block.array[...] = rows
    flat = block.reshaped(rows.size, 1)
    flat.array -= flat.array.mean()
    flat.array /= flat.array.std()
    return float(tf.reduce_sum(model(tf.convert_to_tensor(block.array))))


def main():
    rng = np.random.default_rng(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)])
    model.build((None, 3))
    for customer_group in range(5):
        score = score_group(model, rng.normal(size=(64, 3)))
        print("group", customer_group, "score %.4f" % score, flush=True)
    print("finished")


if __name__ == "__main__":
    main()
