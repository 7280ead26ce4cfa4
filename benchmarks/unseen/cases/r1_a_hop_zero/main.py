import numpy as np
import tensorflow as tf

SAMPLE_RATE = 16000


class SpecConfig:
    def __init__(self, window_ms, hop_ms, sample_rate=SAMPLE_RATE):
        self.window = sample_rate * window_ms // 1000
        self.hop = int(sample_rate * hop_ms) // 1000


def spectrogram(wave, cfg):
    spec = tf.signal.stft(wave, frame_length=cfg.window, frame_step=cfg.hop)
    return tf.abs(spec)


def main():
    t = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    wave = tf.constant(np.sin(2 * np.pi * 440 * t), tf.float32)
    for hop_ms in (10, 5, 0.05):
        spec = spectrogram(wave, SpecConfig(25, hop_ms))
        print(hop_ms, spec.shape)


main()
