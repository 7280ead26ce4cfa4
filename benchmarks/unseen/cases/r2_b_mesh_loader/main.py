"""Fit a signed-distance network to points on synthetic meshes."""
import numpy as np
import tensorflow as tf

from meshes import Mesh


def load_points(resolution):
    mesh = Mesh(resolution, 2 * resolution)
    points = mesh.points
    print("mesh with", len(points), "points")
    return points


def sample(points, count, seed):
    rng = np.random.default_rng(seed)
    chosen = points[rng.integers(0, len(points), size=count)]
    scale = rng.uniform(0.5, 1.5, size=(count, 1)).astype(np.float32)
    return chosen * scale, scale - 1.0


class DistanceNet(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(32, activation="softplus")
        self.out = tf.keras.layers.Dense(1)

    def call(self, xyz):
        return self.out(self.hidden(xyz))


def main():
    net = DistanceNet()
    net.compile(tf.keras.optimizers.Adam(1e-2), "mae")
    points = load_points(resolution=1500)
    for round_number in range(4):
        xyz, distance = sample(points, 4096, round_number)
        print("round", round_number, "loss", net.train_on_batch(xyz, distance))


if __name__ == "__main__":
    main()
