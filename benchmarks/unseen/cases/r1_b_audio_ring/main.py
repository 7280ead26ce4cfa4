"""Streaming keyword spotter: audio arrives in chunks and is collected in one growing buffer."""
import array
import ctypes
import threading

import numpy as np
import tensorflow as tf

RATE = 16000


class Recording:
    def __init__(self):
        self.samples = array.array("f")
        self.lock = threading.Lock()
        self.window = None

    def append(self, chunk):
        with self.lock:
            self.samples.frombytes(chunk.astype(np.float32).tobytes())

    def latest(self, seconds):
        with self.lock:
            count = min(len(self.samples), int(seconds * RATE))
            raw = (ctypes.c_float * len(self.samples)).from_buffer(self.samples)
            self.window = np.ctypeslib.as_array(raw)[-count:]
            return self.window


@tf.function
def keyword_score(signal):
    spectrum = tf.abs(tf.signal.stft(signal, 400, 160))
    return tf.reduce_max(tf.reduce_mean(spectrum, axis=0))


def main():
    recording = Recording()
    rng = np.random.default_rng(0)
    for tick in range(20):
        recording.append(rng.normal(scale=0.1, size=RATE // 4))
        if tick % 4 == 3:
            signal = tf.convert_to_tensor(recording.latest(1.0))
            print("tick", tick, "score %.3f" % float(keyword_score(signal)))


if __name__ == "__main__":
    main()
