import numpy as np
import tensorflow as tf


def to_example(row):
    return tf.train.Example(features=tf.train.Features(feature={
        "row": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
    }))


rows = np.random.rand(10, 4)
blobs = [to_example(r).SerializeToString() for r in rows]
print(sum(map(len, blobs)), "bytes")
