import numpy as np
import tensorflow as tf


def fft_length_for(samples, resolution_hz, rate=100):
    """FFT bins needed for the wanted resolution."""
    return int(rate // resolution_hz) if resolution_hz <= rate else 0


class SpectralPower(tf.keras.layers.Layer):
    def __init__(self, n_fft):
        super().__init__()
        self.n_fft = n_fft

    def call(self, signal):
        spectrum = tf.signal.rfft(signal, [self.n_fft])
        return tf.reduce_sum(tf.abs(spectrum) ** 2, axis=-1, keepdims=True)


def classify(signals, resolution_hz):
    n_fft = fft_length_for(signals.shape[-1], resolution_hz)
    layer = SpectralPower(n_fft)
    return layer(signals) > 10.0


if __name__ == "__main__":
    t = np.linspace(0, 1, 100, endpoint=False)
    batch = tf.constant(np.stack([np.sin(2 * np.pi * f * t) for f in (3, 7, 11)]), tf.float32)
    for resolution in (1, 5, 250):
        print(resolution, classify(batch, resolution).numpy().ravel())
