"""Watch a camera feed: one thread grabs frames into a mapping, the main thread runs the detector."""
import ctypes
import mmap
import threading
import time

import numpy as np
import tensorflow as tf

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Grabber(threading.Thread):
    def __init__(self, height, width):
        super().__init__(daemon=True)
        self.shape = (height, width, 3)
        self.nbytes = height * width * 3 * 4
        self.frame = None
        self.running = True

    def _fresh(self, number):
        address = libc.mmap(None, self.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        raw = (ctypes.c_float * (self.nbytes // 4)).from_address(address)
        pixels = np.ctypeslib.as_array(raw).reshape(self.shape)
        pixels[::64] = number
        return address, pixels

    def run(self):
        address, number = None, 0
        while self.running:
            old = address
            address, self.frame = self._fresh(number)
            if old is not None:
                libc.munmap(old, self.nbytes)
            number += 1
            time.sleep(0.02)


def brightness(pixels):
    tensor = tf.experimental.dlpack.from_dlpack(pixels.__dlpack__())
    luma = tf.tensordot(tensor, tf.constant([0.299, 0.587, 0.114]), 1)
    return tf.reduce_mean(tf.math.sqrt(luma)), tf.math.reduce_std(tensor)


def main():
    grabber = Grabber(1080, 1920)
    grabber.start()
    while grabber.frame is None:
        time.sleep(0.01)
    for step in range(200):
        mean, spread = brightness(grabber.frame)
        if step % 20 == 0:
            print("frame", step, float(mean), float(spread), flush=True)
    grabber.running = False


if __name__ == "__main__":
    main()
