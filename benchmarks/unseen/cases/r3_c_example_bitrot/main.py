import sqlite3

import numpy as np
import tensorflow as tf

SPEC = {"spectrum": tf.io.VarLenFeature(tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}


def serialize(spectrum, label):
    return tf.train.Example(features=tf.train.Features(feature={
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        "spectrum": tf.train.Feature(float_list=tf.train.FloatList(value=spectrum)),
    })).SerializeToString(deterministic=True)


def fill(db):
    rng = np.random.default_rng(17)
    db.execute("create table samples (id integer primary key, example blob)")
    for i in range(64):
        blob = serialize(rng.random(24), i % 4)
        if i == 41:
            blob = damage(blob)
        db.execute("insert into samples values (?, ?)", (i, blob))


def damage(blob):
    """What the dying disk made of this row."""
    at = blob.index(b"spectrum") + 8 + 4
    at = blob.index(b"\x0a\x60", at) + 1
    return blob[:at] + b"\x80\x80\x80\x80\x08" + blob[at + 5:]


def parse(blobs):
    rows = tf.io.parse_example(blobs, SPEC)
    return tf.sparse.to_dense(rows["spectrum"]), rows["label"]


def main():
    db = sqlite3.connect(":memory:")
    fill(db)
    blobs = [row[0] for row in db.execute("select example from samples order by id")]
    ds = tf.data.Dataset.from_tensor_slices(blobs).batch(8).map(parse, num_parallel_calls=2)
    for spectra, labels in ds:
        print(spectra.shape, labels.numpy(), flush=True)


main()
