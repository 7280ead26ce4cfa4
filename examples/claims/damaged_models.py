"""Claim: a damaged model file crashes the program that loads it.
Reality: not found, loading raises; but a weight that was changed in an `.h5` file loads without complaint.
"""

import random
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from endings import ending

EACH = 8


def model():
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, kernel_initializer="ones")])


def restore(_):
    tf.train.Checkpoint(model=model()).restore("checkpoint/c").expect_partial()


LOADERS = {  # the file to damage: what loads it
    "saved_model/saved_model.pb": lambda _: tf.saved_model.load("saved_model"),
    "saved_model/variables/variables.index": lambda _: tf.saved_model.load("saved_model"),
    "checkpoint/c.index": restore,
    "checkpoint/c.data-00000-of-00001": restore,
    "model.keras": keras.models.load_model,
    "model.h5": keras.models.load_model,
    "array.npy": np.load,
}


def save_all():
    saved = model()
    saved.export("saved_model")
    tf.train.Checkpoint(model=saved).write("checkpoint/c")
    saved.save("model.keras")
    saved.save("model.h5")
    np.save("array.npy", saved.get_weights()[0])


def damage_and_load(name, seed):
    rng, original = random.Random(seed), Path(name).read_bytes()
    data = bytearray(original)
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    Path(name).write_bytes(data[: rng.randrange(len(data))] if seed % 4 == 0 else data)
    try:
        LOADERS[name](name)
        print(f"loaded {name}", flush=True)
    except Exception as error:
        print(f"raised {name} {type(error).__name__}", flush=True)
    Path(name).write_bytes(original)


def load_all(name):
    for seed in range(EACH):
        damage_and_load(name, seed)


def change_a_weight():
    data = Path("model.h5").read_bytes()
    one = np.float32(1).tobytes()
    Path("model.h5").write_bytes(data.replace(one * 2, one + np.float32(99).tobytes(), 1))
    print("largest weight", keras.models.load_model("model.h5").get_weights()[0].max(), flush=True)


def main():
    assert ending(save_all).how == "finished"
    for name in LOADERS:
        end = ending(lambda name=name: load_all(name), seconds=20)
        print(f"{name}: {end.how}; raised {end.text.count('raised ')}, loaded {end.text.count('loaded ')} of {EACH}")
    print("changed weight in model.h5:", "largest weight 99" in ending(change_a_weight).text and "loads silently")


if __name__ == "__main__":
    main()
