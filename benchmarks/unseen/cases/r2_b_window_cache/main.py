"""Build normalised windows of a price series with numpy_function and check them before training."""
import numpy as np
import tensorflow as tf

WINDOW = 1024


class Windower:
    def __init__(self, series):
        self.series = series.astype(np.float32)
        memory = np.zeros(WINDOW * 4 + 64, np.uint8)
        skip = -memory.ctypes.data % 64
        self.scratch = memory[skip:skip + WINDOW * 4].view(np.float32)

    def __call__(self, start):
        np.subtract(self.series[start:start + WINDOW], self.series[start], out=self.scratch)
        return self.scratch


def prices(count):
    return 100 + np.cumsum(np.random.default_rng(4).normal(size=count))


def windows(series):
    windower = Windower(series)

    def one(start):
        window = tf.numpy_function(windower, [start], tf.float32)
        return tf.ensure_shape(window, [WINDOW])

    starts = tf.data.Dataset.range(0, len(series) - WINDOW, WINDOW)
    return starts.map(one)


def main():
    series = prices(20 * WINDOW)
    cached = list(windows(series))
    for number, window in enumerate(cached):
        start = number * WINDOW
        expected = series[start:start + WINDOW] - series[start]
        error = float(tf.reduce_max(tf.abs(window - expected.astype(np.float32))))
        if error > 0.01:
            raise ValueError("window %d differs from the series by %.2f" % (number, error))
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    stacked = tf.stack(cached)
    model.fit(stacked[:, :-1], stacked[:, -1:], epochs=1, verbose=2)


if __name__ == "__main__":
    main()
