"""Claim: a save that was killed half-way makes the next load crash.
Reality: no, loading raises; but `.keras` and `.weights.h5` are emptied when the save begins, so that the previous model
is lost, whereas SavedModel and checkpoints write under temporary names and the previous one survives.
"""

import os
import shutil
import signal
import time
from pathlib import Path

import keras
import tensorflow as tf
from endings import ending

TRIALS = 2
PREVIOUS, NEXT = 1.0, 2.0  # what the weights of the two models are filled with


def model(fill=0.0):
    layer = keras.layers.Dense(4000, kernel_initializer=keras.initializers.Constant(fill))
    return keras.Sequential([keras.Input((1000,)), layer])


def checkpoint(model, path):
    return tf.train.Checkpoint(model=model).write(f"{path}/c")


def restored(path):
    fresh = model()
    tf.train.Checkpoint(model=fresh).restore(f"{path}/c").expect_partial()
    return fresh


def with_weights(path):
    fresh = model()
    fresh.load_weights(path)
    return fresh


WAYS = {  # name: how to save, how to load
    "model.keras": (lambda m, path: m.save(path), keras.models.load_model),
    "model.weights.h5": (lambda m, path: m.save_weights(path), with_weights),
    "saved_model": (lambda m, path: m.export(path), tf.saved_model.load),
    "checkpoint": (checkpoint, restored),
}


def files(path):
    return {file: file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file()}


def attempt(name, save, load):
    """Overwrites the previous model, is killed as soon as the save has touched a file, and loads what is there."""
    path = Path(name)
    (shutil.copytree if Path("kept", name).is_dir() else shutil.copy)(Path("kept", name), path)
    before = files(path)

    def kill_when_writing(pid):
        while files(path) == before:
            time.sleep(0.0005)
        os.kill(pid, signal.SIGKILL)

    assert ending(lambda: save(model(NEXT), name), watch=kill_when_writing).how == "SIGKILL"
    end = ending(lambda: print("loaded", float(load(name).variables[0][0, 0]), flush=True))
    (shutil.rmtree if path.is_dir() else os.remove)(path)
    return end


def save_all():
    os.mkdir("kept")
    for name, (save, _) in WAYS.items():
        save(model(PREVIOUS), f"kept/{name}")


def main():
    ending(save_all)
    for name, way in WAYS.items():
        ends = [attempt(name, *way) for _ in range(TRIALS)]
        kept = sum(f"loaded {PREVIOUS}" in end.text for end in ends)
        missing = ", 'File not found'" * all("File not found" in end.text for end in ends)
        print(f"{name}: previous model kept {kept} of {TRIALS}; loading: {ends[0].how}{missing}")


if __name__ == "__main__":
    main()
