import numpy as np
import tensorflow as tf


class TrackFinder(tf.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    @tf.function(jit_compile=True)
    def path(self, image):
        hits = tf.where(image > self.threshold)
        return tf.cumsum(tf.cast(hits, tf.float64))


def frames(n, seed=17):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield tf.constant(rng.normal(size=(64, 64)), tf.float32)


def main():
    finder = TrackFinder(0.0)
    for number, frame in enumerate(frames(3)):
        path = finder.path(frame)
        print(number, path.shape, path[-1].numpy())


main()
