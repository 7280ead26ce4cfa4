from multiprocessing import shared_memory

import numpy as np
import tensorflow as tf


class FrameRing:
    def __init__(self, slots, height, width):
        self.shape = (slots, height, width)
        self.shm = shared_memory.SharedMemory(create=True, size=int(np.prod(self.shape)) * 4)

    def array(self):
        return np.ndarray(self.shape, dtype=np.float32, buffer=self.shm.buf)

    def close(self):
        self.shm.close()
        self.shm.unlink()


def collect(slots=8):
    ring = FrameRing(slots, 480, 640)
    frames = ring.array()
    for i in range(slots):
        frames[i] = np.sin(np.arange(480 * 640).reshape(480, 640) * 0.001 * i)
    ring.close()
    return frames


def brightness(frames):
    @tf.function
    def mean_per_frame(batch):
        return tf.reduce_mean(batch, axis=(1, 2))

    peak = max(float(frames.max()), 1e-6)
    return mean_per_frame(tf.convert_to_tensor(frames / peak))


if __name__ == "__main__":
    frames = collect()
    print("collected", frames.shape, frames.dtype)
    print(brightness(frames).numpy())
