import os

import numpy as np
import tensorflow as tf


class LoaderConfig:
    def __init__(self, workers=None):
        # "0 or None: as many as possible"
        self.workers = workers or np.iinfo(np.int32).max


def augment(image):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.2)


def make_loader(images, cfg):
    ds = tf.data.Dataset.from_tensor_slices(images)
    ds = ds.map(augment, num_parallel_calls=cfg.workers)
    return ds.batch(4)


def main():
    images = np.random.default_rng(0).random((16, 8, 8, 3)).astype("float32")
    cfg = LoaderConfig(int(os.environ.get("WORKERS", "0")))
    for step, batch in enumerate(make_loader(images, cfg)):
        print(step, batch.shape, float(tf.reduce_mean(batch)))


main()
