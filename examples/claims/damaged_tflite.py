"""Claim: a damaged TensorFlow Lite model raises when it is loaded.
Reality: half true. Given as bytes it is verified first; given as a path it is mapped and not verified, so that many
damaged files die with SIGSEGV or SIGBUS, as does a good file that is cut off while it is mapped.
"""

import os
import random
from pathlib import Path

import tensorflow as tf
from endings import ending

TRIED = 8


class Scale(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([1, 50_000])])
    def __call__(self, x):
        return x * tf.reshape(tf.range(50_000.0), [1, 50_000])


def save():
    scale = Scale()
    function = scale.__call__.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], scale)
    Path("model.tflite").write_bytes(converter.convert())


def damage(seed):
    rng, data = random.Random(seed), bytearray(Path("model.tflite").read_bytes())
    for _ in range(8):  # in the part that holds the structure; the rest are weights
        data[rng.choice([rng.randrange(200), -rng.randrange(1, 1000)])] = rng.randrange(256)
    Path("damaged.tflite").write_bytes(data)


def load_path():
    tf.lite.Interpreter("damaged.tflite").allocate_tensors()


def load_bytes():
    tf.lite.Interpreter(model_content=Path("damaged.tflite").read_bytes()).allocate_tensors()


def cut_off_while_mapped():
    interpreter = tf.lite.Interpreter("model.tflite")
    interpreter.allocate_tensors()
    os.truncate("model.tflite", 4096)
    interpreter.invoke()


def main():
    assert tf.lite.Interpreter  # imported now, once, instead of in each process
    assert ending(save).how == "finished"
    ends = {"path": [], "bytes": []}
    for seed in range(TRIED):
        damage(seed)
        ends["path"].append(ending(load_path, seconds=2).how)
        ends["bytes"].append(ending(load_bytes, seconds=2).how)
    for given, how in ends.items():
        print(f"given as {given}: {sum(end.startswith('SIG') for end in how)} of {TRIED} crashed")
    print(f"cut off while mapped: {ending(cut_off_while_mapped).how}")


if __name__ == "__main__":
    main()
