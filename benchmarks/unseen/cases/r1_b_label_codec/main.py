"""Turn class codes from the camera into labels and weights, then train on them."""
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, "build")
import labelcodec

CLASSES = {3: ("car", 0, 1.0), 7: ("truck", 1, 2.0), 9: ("bus", 2, 2.5)}


def read_codes(count):
    rng = np.random.default_rng(11)
    return rng.choice([3, 7, 9, 12], size=count, p=[0.5, 0.3, 0.15, 0.05])


def clean(codes):
    kept, weights, names = [], [], set()
    for position, code in enumerate(codes.tolist()):
        name, index, weight = labelcodec.decode(CLASSES, code)
        names.add(name)
        if index >= 0:
            kept.append((position, index))
            weights.append(weight)
    print("labels seen:", sorted(names))
    return np.array(kept), np.array(weights, np.float32)


def main():
    codes = read_codes(4000)
    images = tf.random.normal([len(codes), 12])
    kept, weights = clean(codes)
    x = tf.gather(images, kept[:, 0])
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, kept[:, 1], sample_weight=weights, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
