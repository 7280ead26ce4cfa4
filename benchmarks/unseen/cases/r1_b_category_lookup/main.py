"""Predict basket value from product categories listed in the shop's export."""
import csv
import io
import os

import numpy as np
import tensorflow as tf

shop_ops = tf.load_op_library(os.path.abspath("build/category_index.so"))
KNOWN = ["books", "garden", "kitchen", "music", "toys"]


def export(rows):
    rng = np.random.default_rng(3)
    out = io.StringIO()
    writer = csv.writer(out)
    for i in range(rows):
        name = KNOWN[rng.integers(len(KNOWN))]
        if i == 2 * rows // 3:
            name = name.capitalize()
        writer.writerow([name, "%.2f" % rng.gamma(2.0, 15.0)])
    return out.getvalue()


def parse(text):
    names, prices = zip(*csv.reader(io.StringIO(text)))
    return np.array(names), np.array(prices, np.float32)


@tf.function
def prepare(names, prices):
    index = shop_ops.category_index(names, known=KNOWN)
    return tf.one_hot(index, len(KNOWN)), tf.math.log1p(prices)


def main():
    names, prices = parse(export(6000))
    data = tf.data.Dataset.from_tensor_slices((names, prices)).batch(1000).map(prepare)
    model = tf.keras.Sequential([tf.keras.layers.Input((len(KNOWN),)), tf.keras.layers.Dense(1)])
    model.compile("adam", "mae")
    model.fit(data, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
