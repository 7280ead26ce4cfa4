"""Rolling energy feature of camera frames, compiled for serving."""
import tensorflow as tf


class EnergyFeature(tf.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = tf.Variable(gain, dtype=tf.float64)

    def _upright(self, frame):
        # the camera is mounted sideways
        return tf.image.rot90(frame)

    def __call__(self, frame):
        energy = tf.experimental.numpy.cumsum(self._upright(frame))
        return self.gain * energy


def main():
    tf.random.set_seed(7)
    frames = tf.random.normal([3, 8, 4, 3], dtype=tf.float64)
    feature = EnergyFeature(0.5)
    for frame in frames:
        print("reference", feature(frame).shape)

    serve = tf.function(feature.__call__, jit_compile=True)
    for i, frame in enumerate(frames):
        energy = serve(frame)
        print("compiled", i, float(energy[-1]))


main()
