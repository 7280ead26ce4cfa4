import os
import tempfile

import numpy as np
import tensorflow as tf

BOXES = np.array([
    # top, left, bottom, right
    [2, 3, 20, 24],
    [0, 0, 31, 31],
    [12, 9, 12, 30],
    [5, 5, 9, 9],
], dtype=np.int32)


def make_page(seed=0):
    return tf.constant(np.random.default_rng(seed).integers(0, 255, (32, 32, 3)), tf.uint8)


def cut(page, box):
    return page[box[0]:box[2], box[1]:box[3], :]


def export_crops(page, boxes, folder):
    def encode(index, box):
        return index, tf.io.encode_png(cut(page, box))

    ds = tf.data.Dataset.from_tensor_slices(boxes).enumerate()
    ds = ds.map(encode, num_parallel_calls=2)
    for index, png in ds:
        tf.io.write_file(os.path.join(folder, f"crop{int(index)}.png"), png)
        print("crop", int(index), len(png.numpy()), "bytes")


with tempfile.TemporaryDirectory() as out:
    export_crops(make_page(), BOXES, out)
