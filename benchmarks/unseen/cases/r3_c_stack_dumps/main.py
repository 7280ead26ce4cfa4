import faulthandler
import signal
import sys
import threading
import time

import numpy as np
import tensorflow as tf

faulthandler.enable()
faulthandler.dump_traceback_later(2, repeat=True)
faulthandler.register(signal.SIGUSR1, all_threads=True)


class Heartbeat(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.beats = 0

    def run(self):
        while True:
            self.beats += 1
            time.sleep(0.5)


def slow_feature(row):
    time.sleep(0.02)
    return np.float32(row.sum())


def main():
    heartbeat = Heartbeat()
    heartbeat.start()
    rows = np.random.rand(200, 16).astype("float32")
    ds = tf.data.Dataset.from_tensor_slices(rows)
    ds = ds.map(lambda r: tf.numpy_function(slow_feature, [r], tf.float32))
    total = 0.0
    for i, value in enumerate(ds):
        total += float(value)
        if i == 100:
            signal.raise_signal(signal.SIGUSR1)
    faulthandler.cancel_dump_traceback_later()
    print("features", i + 1, "total", round(total, 2), "beats", heartbeat.beats, file=sys.stderr)


main()
