"""Train a small churn model from a CSV export, a few epochs."""
import csv
import os
import tempfile

import tensorflow as tf

EPOCHS = 10
BATCH_SIZE = 512


def export_rows(path, n=400):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        for i in range(n):
            out.writerow([f"cust{i}", i * 0.25, "" if i % 7 == 0 else i * 1.5, i % 2])


def load_customers(path):
    return tf.data.experimental.CsvDataset(
        path,
        [tf.float32, tf.constant([0.0], dtype=tf.float32), tf.int32],
        select_cols=[1, 2, 3],
    )


def build_model():
    model = tf.keras.Sequential([
        tf.keras.layers.Input(shape=(2,)),
        tf.keras.layers.Dense(8, activation="relu"),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    return model


def main():
    path = os.path.join(tempfile.mkdtemp(), "customers.csv")
    export_rows(path)
    dataset = load_customers(path)
    model = build_model()
    for epoch in range(EPOCHS):
        dataset = dataset.shuffle(1000).repeat().batch(BATCH_SIZE, drop_remainder=True)
        print("epoch", epoch, dataset.element_spec[0].shape)
    features = dataset.map(lambda a, b, y: (tf.stack([a, b], axis=-1), y))
    model.fit(features, epochs=EPOCHS, steps_per_epoch=4)


if __name__ == "__main__":
    main()
