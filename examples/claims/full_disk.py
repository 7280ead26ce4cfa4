"""Claim: a full disk crashes TensorFlow.
Reality: half true. Saving mostly raises an exception; but `save_weights("….weights.h5")` raises and then dies with
SIGSEGV inside libhdf5 when the program ends, and writing through np.memmap dies with SIGBUS.
"""

import keras
import numpy as np
import tensorflow as tf
from endings import ending, need_small_disks, small_disk


def model():
    return keras.Sequential([keras.Input((500,)), keras.layers.Dense(4000), keras.layers.Dense(500)])


def checkpoint():
    tf.train.Checkpoint(model=model()).write(f"{small_disk(4)}/checkpoint")


def saved_model():
    model().export(f"{small_disk(4)}/model")


def numpy_save():
    np.save(f"{small_disk(4)}/features.npy", np.ones(4_000_000, "float32"))


def keras_file():
    model().save(f"{small_disk(4)}/model.keras")


def weights_file():
    try:
        model().save_weights(f"{small_disk(4)}/model.weights.h5")
    except OSError as error:
        print("raised", type(error).__name__, flush=True)


def memmap():
    mapped = np.memmap(f"{small_disk(4)}/features", "float32", "w+", shape=4_000_000)
    mapped[:] = tf.ones(4_000_000)


def main():
    need_small_disks()
    for job in (checkpoint, saved_model, numpy_save, keras_file, weights_file, memmap):
        end = ending(job)
        print(f"{job.__name__}:", "OSError, then " * ("raised OSError" in end.text) + end.how)


if __name__ == "__main__":
    main()
