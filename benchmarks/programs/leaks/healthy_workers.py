"""Healthy: a PyDataset whose batches are made by two worker processes and travel through a queue."""

import clock
import keras
import numpy as np


class Noise(keras.utils.PyDataset):
    def __len__(self):
        return 200

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        return rng.normal(size=(16, 48, 48, 3)).astype("float32"), rng.integers(0, 5, 16)


class EndInTime(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = clock.over()


if __name__ == "__main__":
    model = keras.Sequential(
        [keras.layers.Conv2D(8, 3, 2, activation="relu"), keras.layers.Flatten(), keras.layers.Dense(5)]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = Noise(workers=2, use_multiprocessing=True, max_queue_size=20)
    model.fit(data, epochs=1000, callbacks=[EndInTime()], verbose=2)
