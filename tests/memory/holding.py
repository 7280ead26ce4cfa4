"""Holds memory in things that have names, until little is left; makes steps for a while; then wants too much at once.

python holding.py LIMIT SECONDS"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

MIB = 1 << 20
limit, seconds = int(sys.argv[1]), float(sys.argv[2])


class Loader:
    def __init__(self, size):
        self.images = np.ones(size, "uint8")


def used():
    return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10


history = [tf.ones((4, 256, 1024)) for _ in range(25)]  # 100 MiB
model = keras.Sequential([keras.Input((1024,)), keras.layers.Dense(10 * 1024, name="wide")])  # 40 MiB
loader = Loader(int(0.87 * limit) - used())
end = time.monotonic() + seconds
for _batch in tf.data.Dataset.range(1_000_000):
    time.sleep(0.02)
    if time.monotonic() > end:
        break
jump = np.ones(limit, "uint8")
