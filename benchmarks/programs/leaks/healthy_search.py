"""Healthy: a search over hyper-parameters builds a new model eight times, and clears the session before each."""

import clock
import keras
import numpy as np


class EndInTime(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if clock.over((trial + 1) / 8):
            self.model.stop_training = True


rng = np.random.default_rng(0)
x, y = rng.normal(size=(4096, 64)).astype("float32"), rng.integers(0, 4, 4096)
best = {}
for trial in range(8):
    keras.backend.clear_session()
    width = 32 * 2 ** (trial % 4)
    model = keras.Sequential(
        [keras.layers.Dense(width, "relu"), keras.layers.Dense(width, "relu"), keras.layers.Dense(4)]
    )
    model.compile(
        keras.optimizers.Adam(1e-3 / (1 + trial // 4)), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    fitted = model.fit(x, y, epochs=10_000, verbose=0, callbacks=[EndInTime()], validation_data=(x[:512], y[:512]))
    best[trial] = min(fitted.history["loss"])
    print(trial, width, best[trial], flush=True)
