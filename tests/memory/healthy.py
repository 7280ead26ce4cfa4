"""Programs whose memory rises and falls as it should: `python healthy.py KIND FOLDER`. None of them leaks."""

from __future__ import annotations

import collections
import os
import sys
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

PAUSE_S = 0.008
random = np.random.default_rng(0)


def images(count=512, size=24):
    return random.random((count, size, size, 3), "float32"), random.integers(0, 4, count)


def network(size=24):
    import keras

    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((size, size, 3)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(4),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def slowly():
    """Small models are too quick for their memory to be watched."""
    import keras

    return keras.callbacks.LambdaCallback(on_train_batch_end=lambda *_, **__: time.sleep(PAUSE_S))


def fit(folder):
    """With an evaluation and a save after every epoch."""
    import keras

    x, y = images()
    saving = keras.callbacks.ModelCheckpoint(Path(folder) / "best.keras")
    network().fit(x, y, batch_size=8, epochs=12, validation_data=(x, y), callbacks=[saving], verbose=0)


def shuffle(_):
    """A loop of its own, with a large shuffle buffer and losses that are kept as numbers."""
    import tensorflow as tf

    weights = tf.Variable(tf.random.normal((5000, 8)))
    losses = []

    @tf.function
    def train_step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(batch, weights) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    data = tf.data.Dataset.range(8000).map(lambda number: tf.random.normal((5000,)) + tf.cast(number, tf.float32))
    for batch in data.shuffle(4000).batch(4).repeat().prefetch(4).take(1200):
        losses.append(float(train_step(batch)))
        time.sleep(PAUSE_S)


def churn(_):
    """NumPy alone: arrays of all sizes come and go, some in reference cycles."""
    end = time.monotonic() + 45
    recent = collections.deque(maxlen=50)
    while time.monotonic() < end:
        array = random.random(int(random.integers(1_000, 500_000)))
        recent.append(array)
        cycle = {"data": np.zeros(20_000)}
        cycle["self"] = cycle
        time.sleep(PAUSE_S)


def cycles(_):
    """Garbage that only Python's collector frees."""
    import tensorflow as tf

    for batch in tf.data.Dataset.from_tensors(tf.zeros((4, 8))).repeat().take(1200):
        holder = [np.zeros(30_000), batch]
        holder.append(holder)
        time.sleep(PAUSE_S)


def cache(_):
    """The first epoch fills the cache."""
    import tensorflow as tf

    model = network()
    data = tf.data.Dataset.range(3000).map(lambda _: tf.random.normal((96, 96, 3)))
    data = data.cache().map(lambda image: (image[:24, :24], tf.constant(1)))
    model.fit(data.batch(4), epochs=3, verbose=0, callbacks=[slowly()])


def lengths(_):
    """Batches of many lengths: a trace for each, and then no more."""
    import keras

    layers = keras.layers
    model = keras.Sequential([layers.Embedding(1000, 16), layers.LSTM(16), layers.Dense(1)])
    model.compile("adam", "mse")
    for _number in range(500):
        length = int(random.integers(5, 20))
        model.train_on_batch(random.integers(0, 1000, (8, length)), np.zeros((8, 1)))


def loader(_):
    """Batches made by Python threads."""
    import keras

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 150

        def __getitem__(self, _):
            return images(16)

    network().fit(Batches(workers=2, max_queue_size=8), epochs=5, verbose=0)


def eager(_):
    model = network()
    model.run_eagerly = True
    x, y = images(256)
    model.fit(x, y, batch_size=8, epochs=10, verbose=0)


def resizing(_):
    """Images become larger, and with them the memory, in steps."""
    import keras

    layers = keras.layers
    model = keras.Sequential(
        [layers.Conv2D(16, 3, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(4)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for size in (16, 24, 32, 48, 64):
        model.fit(*images(512, size), batch_size=8, epochs=2, verbose=0)


def predictions(_):
    model = network()
    x, _labels = images(64)
    for _number in range(150):
        model.predict(x, batch_size=8, verbose=0)


def logs(folder):
    """Event files and a table are written all the time."""
    import keras
    import tensorflow as tf

    x, y = images()
    writer = tf.summary.create_file_writer(str(folder))
    write = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, **_: tf.summary.experimental.write_raw_pb(b"", step=batch)
    )
    with writer.as_default():
        callbacks = [write, keras.callbacks.CSVLogger(Path(folder) / "log.csv")]
        network().fit(x, y, batch_size=8, epochs=10, verbose=0, callbacks=callbacks)


def replay(_):
    """A replay buffer that fills, and is full in the end."""
    import tensorflow as tf

    buffer = collections.deque(maxlen=1000)
    for batch in tf.data.Dataset.from_tensors(tf.zeros((4, 8))).repeat().take(1300):
        buffer.append((np.ones(30_000), float(batch[0, 0])))
        time.sleep(PAUSE_S)


def preallocated(_):
    """Results are written into an array that was made before: pages are taken as it fills."""
    import tensorflow as tf

    results = np.zeros((1300, 30_000))
    for number, _batch in enumerate(tf.data.Dataset.from_tensors(tf.zeros((4, 8))).repeat().take(1300)):
        results[number] = number
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
