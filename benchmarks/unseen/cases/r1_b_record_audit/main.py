"""Audit a TFRecord file; the exit status tells the nightly job how many records are bad."""
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf


def write_records(path, count):
    rng = np.random.default_rng(2026)
    bad = set(rng.choice(count, size=139, replace=False).tolist())
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(count):
            size = 8 if i in bad else 16
            feature = tf.train.Feature(float_list=tf.train.FloatList(value=rng.random(size)))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString())


def parse(record):
    row = tf.io.parse_single_example(record, {"x": tf.io.VarLenFeature(tf.float32)})["x"]
    return tf.sparse.to_dense(row)


def audit(path):
    broken = 0
    for row in tf.data.TFRecordDataset(path).map(parse):
        if row.shape[0] != 16:
            broken += 1
            print("Segment fault: row has", row.shape[0], "values") if broken < 3 else None
    return broken


if __name__ == "__main__":
    target = os.path.join(tempfile.mkdtemp(), "batch.tfrecord")
    write_records(target, 2000)
    sys.exit(audit(target))
