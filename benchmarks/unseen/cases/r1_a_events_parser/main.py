"""Reads click events written by the tracker and counts them per user."""
import os
import tempfile

import numpy as np
import tensorflow as tf

META_FIELDS = []  # the tracker sends no extra fields any more


def write_events(path, n=40, seed=7):
    rng = np.random.default_rng(seed)
    with tf.io.TFRecordWriter(path) as writer:
        for user in range(n):
            ex = tf.train.Example()
            ex.features.feature["user"].int64_list.value.append(user % 5)
            ex.features.feature["dwell"].float_list.value.extend(rng.random(4).tolist())
            ex.features.feature["meta"].float_list.value.extend(rng.random(2).tolist())
            writer.write(ex.SerializeToString())


def spec():
    return {
        "user": tf.io.FixedLenFeature([], tf.int64),
        "dwell": tf.io.FixedLenFeature([4], tf.float32),
        "meta": tf.io.FixedLenSequenceFeature([len(META_FIELDS)], tf.float32, allow_missing=True),
    }


def load(path):
    ds = tf.data.TFRecordDataset(path)
    return ds.map(lambda rec: tf.io.parse_single_example(rec, spec()), num_parallel_calls=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "events.tfrecord")
        write_events(path)
        totals = {}
        for event in load(path).batch(8):
            for user, dwell in zip(event["user"].numpy(), event["dwell"].numpy()):
                totals[int(user)] = totals.get(int(user), 0.0) + float(dwell.sum())
        print(totals)


if __name__ == "__main__":
    main()
