import subprocess
import sys
import time
from multiprocessing import shared_memory

import numpy as np
import tensorflow as tf

ROWS, COLS = 4096, 128


class PriceBoard:
    def __init__(self):
        self.block = shared_memory.SharedMemory(create=True, size=ROWS * COLS * 4)
        self.table = np.ndarray((ROWS, COLS), np.float32, buffer=self.block.buf)
        self.table[:] = 1.0

    def snapshot(self):
        return tf.constant(self.table)


@tf.function
def volatility(table):
    return tf.math.reduce_std(table, axis=0)


def main():
    board = PriceBoard()
    subprocess.Popen([sys.executable, "publisher.py", board.block.name])
    for tick in range(100):
        sigma = volatility(board.snapshot())
        print(tick, float(tf.reduce_max(sigma)), flush=True)
        time.sleep(0.1)


main()
