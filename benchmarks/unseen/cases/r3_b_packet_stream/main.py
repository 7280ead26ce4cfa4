"""Vibration monitoring: packets from the gateway carry a small header and float samples."""
import struct

import numpy as np
import tensorflow as tf

HEADER = struct.Struct("<4sHHIQ")
SAMPLES = 6400


def gateway(count):
    rng = np.random.default_rng(9)
    for number in range(count):
        samples = rng.normal(size=SAMPLES).astype(np.float32)
        yield bytearray(HEADER.pack(b"VIBR", 1, 4, SAMPLES, number) + samples.tobytes())


def decode(packet):
    magic, version, channels, count, stamp = HEADER.unpack_from(packet)
    if magic != b"VIBR" or version != 1:
        raise ValueError("not a vibration packet")
    samples = np.frombuffer(packet, np.float32, count=count, offset=HEADER.size)
    return stamp, samples.reshape(channels, -1)


def to_tensor(array):
    """Hands the samples over without copying them."""
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


class Detector(tf.Module):
    def __init__(self, channels):
        super().__init__()
        self.weights = tf.Variable(tf.ones([channels, 1]) / channels)

    def __call__(self, window):
        centred = window - tf.reduce_mean(window, axis=1, keepdims=True)
        energy = tf.sqrt(tf.reduce_mean(tf.square(centred), axis=1))
        return tf.squeeze(tf.matmul(energy[None], self.weights))


def main():
    detector = Detector(channels=4)
    for packet in gateway(10):
        stamp, window = decode(packet)
        print("packet", stamp, "level %.4f" % float(detector(to_tensor(window))), flush=True)


if __name__ == "__main__":
    main()
