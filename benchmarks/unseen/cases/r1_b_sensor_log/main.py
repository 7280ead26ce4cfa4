"""Fit an anomaly detector on a sensor log while the recorder keeps writing it."""
import os
import tempfile

import numpy as np
import tensorflow as tf

CHANNELS = 16
WINDOW = 32


class Recorder:
    """Keeps the newest part of the log on disk."""

    def __init__(self, path, keep_rows):
        self.path = path
        self.keep_rows = keep_rows

    def record(self, rows):
        with open(self.path, "ab") as log:
            log.write(rows.astype(np.float32).tobytes())

    def rotate(self):
        with open(self.path, "r+b") as log:
            size = os.fstat(log.fileno()).st_size
            keep = min(size, self.keep_rows * CHANNELS * 4)
            log.seek(size - keep)
            newest = log.read()
            log.seek(0)
            log.write(newest)
            log.truncate()


class RotateEveryEpoch(tf.keras.callbacks.Callback):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def on_epoch_end(self, epoch, logs=None):
        self.recorder.rotate()
        print("epoch", epoch, "loss %.4f" % logs["loss"], "- log rotated")


def windows(table):
    def generate():
        for start in range(0, len(table) - WINDOW, WINDOW):
            yield table[start:start + WINDOW], table[start + WINDOW]
    return generate


def main():
    path = os.path.join(tempfile.mkdtemp(), "sensors.f32")
    recorder = Recorder(path, keep_rows=2000)
    recorder.record(np.random.default_rng(1).normal(size=(20000, CHANNELS)))
    table = np.memmap(path, dtype=np.float32, mode="r").reshape(-1, CHANNELS)
    data = tf.data.Dataset.from_generator(
        windows(table), output_signature=(tf.TensorSpec((WINDOW, CHANNELS)), tf.TensorSpec((CHANNELS,)))).batch(32)
    model = tf.keras.Sequential([
        tf.keras.layers.Input((WINDOW, CHANNELS)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(CHANNELS),
    ])
    model.compile("adam", "mse")
    model.fit(data, epochs=3, verbose=0, callbacks=[RotateEveryEpoch(recorder)])


if __name__ == "__main__":
    main()
