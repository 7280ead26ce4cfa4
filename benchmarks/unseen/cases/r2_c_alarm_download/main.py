import signal
import time

import numpy as np
import tensorflow as tf


class Deadline:
    """Gives a step at most so many seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        signal.alarm(self.seconds)
        return self

    def __exit__(self, *exc):
        return False


def download_prices():
    time.sleep(0.5)
    return np.cumsum(np.random.normal(size=(400, 5)), axis=0).astype("float32")


def windows(prices, length=30):
    ds = tf.keras.utils.timeseries_dataset_from_array(prices[:-1], prices[1:, :1], length, batch_size=32)
    return ds.repeat()


def main():
    with Deadline(4):
        prices = download_prices()
    print("prices", prices.shape, flush=True)
    model = tf.keras.Sequential([tf.keras.Input((30, 5)), tf.keras.layers.GRU(8), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(windows(prices), steps_per_epoch=100, epochs=40, verbose=2)


main()
