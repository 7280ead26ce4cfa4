"""Claim: bad arguments of an op make Python raise an exception.
Reality: half true. Most do, but public ops still die by a failed CHECK, a wild access or a division by zero.
"""

import tensorflow as tf
from endings import ending


def matmul_of_wrong_shapes():
    tf.matmul([[1.0, 2.0]], [[1.0, 2.0]])


def expand_dims_beyond_rank_254():
    x = tf.constant(1.0)
    for _ in range(300):
        x = tf.expand_dims(x, 0)


def shuffle_with_huge_buffer():
    list(tf.data.Dataset.range(4).shuffle(2**62))


def parse_example_of_empty_shape():
    values = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"tags": values}))
    shape = tf.io.FixedLenSequenceFeature([0], tf.float32, allow_missing=True)
    tf.io.parse_example([example.SerializeToString()], {"tags": shape})


def main():
    jobs = matmul_of_wrong_shapes, expand_dims_beyond_rank_254, shuffle_with_huge_buffer, parse_example_of_empty_shape
    for job in jobs:
        print(f"{job.__name__}: {ending(job).how}")


if __name__ == "__main__":
    main()
