"""What one kind of TensorFlow program uses: does the work that is named, then prints its own numbers."""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

PARAMETERS = 1000  # squared: a million
FILES, RECORDS = 64, 20


def model(**options):
    layers = tf.keras.layers
    built = tf.keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(1)])
    built.compile("adam", "mse", **options)
    built.fit(np.zeros((2048, 32), "f"), np.zeros((2048, 1), "f"), epochs=2, verbose=0)
    return built


def op():
    tf.matmul(tf.ones((256, 256)), tf.ones((256, 256))).numpy()


def data():
    numbers = tf.data.Dataset.range(20000).map(lambda x: tf.cast(x, tf.float32) * 2, tf.data.AUTOTUNE)
    for _ in numbers.batch(32).prefetch(tf.data.AUTOTUNE):
        pass


def interleave():
    with tempfile.TemporaryDirectory() as folder:
        for name in range(FILES):
            with tf.io.TFRecordWriter(f"{folder}/{name}") as writer:
                for _ in range(RECORDS):
                    writer.write(b"x" * 100)
        files = tf.data.Dataset.list_files(f"{folder}/*")
        for _ in files.interleave(tf.data.TFRecordDataset, cycle_length=16, num_parallel_calls=tf.data.AUTOTUNE):
            pass


def save():
    """A million parameters, in the format that takes most room."""
    layer = tf.keras.layers.Dense(PARAMETERS, use_bias=False)
    built = tf.keras.Sequential([layer])
    built.compile("adam", "mse")
    built.fit(np.zeros((8, PARAMETERS), "f"), np.zeros((8, PARAMETERS), "f"), verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        built.save(f"{folder}/model.keras")
        return {"saved": os.path.getsize(f"{folder}/model.keras")}


WORK = {
    "import": lambda: None,
    "op": op,
    "data": data,
    "fit": model,
    "jit": lambda: model(jit_compile=True),
    "interleave": interleave,
    "save": save,
}


def numbers():
    status = Path("/proc/self/status").read_text()
    fields = {name: int(value) << 10 for name, value in re.findall(r"(\w+):\s+(\d+) kB", status)}
    return {
        "resident": fields["VmHWM"],
        "anonymous": fields["RssAnon"],
        "mapped": fields["VmPeak"],
        "data": fields["VmData"],
        "mappings": len(Path("/proc/self/maps").read_text().splitlines()),
    }


more = WORK[sys.argv[1]]()
print(json.dumps({**numbers(), **(more if isinstance(more, dict) else {})}), file=sys.stderr)
