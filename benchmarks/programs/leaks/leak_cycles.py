"""Leak: the collector is off "for speed", and every record refers to itself. Python objects without an owner."""

import gc

import clock
import numpy as np


class Record:
    def __init__(self, values):
        self.values = values
        self.root = self


gc.disable()
rng = np.random.default_rng(0)
for _ in clock.steps():
    record = Record(rng.normal(size=(40, 100)))
    np.linalg.svd(record.values)
