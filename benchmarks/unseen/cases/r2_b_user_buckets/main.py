"""Click prediction from user, item and campaign ids."""
import json

import numpy as np
import tensorflow as tf

from features import IdFeature

CONFIG = json.loads('{"user": 250000, "item": 40000, "campaign": 800}')


class ClickModel(tf.keras.Model):
    def __init__(self, config):
        super().__init__()
        self.names = sorted(config)
        self.parts = [IdFeature(config[name], name=name) for name in self.names]
        self.score = tf.keras.layers.Dense(1, activation="sigmoid")

    def call(self, ids):
        columns = tf.unstack(ids, axis=1)
        return self.score(tf.concat([part(column) for part, column in zip(self.parts, columns)], axis=1))


def clicks(count):
    rng = np.random.default_rng(8)
    ids = np.stack([rng.integers(0, CONFIG[name], size=count) for name in sorted(CONFIG)], axis=1)
    return ids, (ids.sum(axis=1) % 3 == 0).astype(np.float32)


def main():
    model = ClickModel(CONFIG)
    model.compile("adam", "binary_crossentropy")
    ids, clicked = clicks(4096)
    model.fit(ids, clicked, batch_size=256, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
