import os

import numpy as np
import tensorflow as tf


def write(folder, shards=3, rows=200):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(3)
    for s in range(shards):
        with tf.io.TFRecordWriter(f"{folder}/part-{s}.tfrecord") as w:
            for _ in range(rows):
                x = rng.normal(size=12).astype("float32")
                feature = {
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                    "y": tf.train.Feature(float_list=tf.train.FloatList(value=[x.sum()])),
                }
                w.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def sync_from_bucket(folder):
    write(folder)
    last = f"{folder}/part-2.tfrecord"
    os.truncate(last, os.path.getsize(last) * 2 // 3 - 5)
