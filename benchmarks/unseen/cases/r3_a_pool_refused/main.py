import numpy as np
import tensorflow as tf


def volumes(seed=4):
    rng = np.random.default_rng(seed)
    for depth in (8, 4, 1):
        yield rng.random((1, depth, 8, 8, 2)).astype("float32")


class VolumeNet(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.pool = tf.keras.layers.MaxPooling3D(pool_size=2)
        self.mean = tf.keras.layers.GlobalAveragePooling3D()

    def call(self, x):
        return self.mean(self.pool(x))


def main():
    net = VolumeNet()
    for volume in volumes():
        print(volume.shape, net(volume).numpy())


main()
