import numpy as np
import tensorflow as tf

GRID = (2 ** 22, 2 ** 21, 2 ** 21)  # 1 mm cells of the whole hall


class VoxelView(tf.Module):
    """Shows a flat list of hit counts as [events, x, y, z, features]."""

    def __init__(self, grid):
        super().__init__()
        self.grid = tf.constant(grid, tf.int64)

    @tf.function
    def __call__(self, hits):
        events = tf.shape(hits, out_type=tf.int64)[0]
        shape = tf.concat([[events], self.grid, [-1]], axis=0)
        return tf.reshape(hits, shape)


def read_run(run):
    rng = np.random.default_rng(run)
    hits = rng.random(0 if run == 2 else 4).astype("float32")
    return hits


def main():
    small, hall = VoxelView((1, 1, 1)), VoxelView(GRID)
    for run in range(3):
        hits = tf.constant(read_run(run))
        view = small(hits) if len(hits) else hall(hits)
        print("run", run, view.shape)


main()
