import os
import tempfile

import numpy as np
import tensorflow as tf
from PIL import Image


def fake_photos(folder, n=150):
    rng = np.random.default_rng(5)
    for i in range(n):
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(f"{folder}/{i:04d}.png")


class PhotoSet:
    def __init__(self, folder):
        names = sorted(os.listdir(folder))
        self.images = [Image.open(os.path.join(folder, n)) for n in names]

    def batches(self, size=16):
        for i in range(0, len(self.images), size):
            yield tf.stack([tf.convert_to_tensor(np.asarray(im)) for im in self.images[i:i + size]])


def main():
    with tempfile.TemporaryDirectory() as folder:
        fake_photos(folder)
        photos = PhotoSet(folder)
        means = [tf.reduce_mean(tf.cast(b, tf.float32)).numpy() for b in photos.batches()]
        print("mean pixel", np.mean(means))


main()
