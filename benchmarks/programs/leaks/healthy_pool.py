"""Healthy: a pool of threads grows to its size, as more and more work is given to it at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import clock
import numpy as np


def work(seed):
    scratch = np.random.default_rng(seed).random((120, 120))
    return float(np.linalg.eigvalsh(scratch @ scratch.T)[-1])


most = 0
with ThreadPoolExecutor(max_workers=48) as pool:
    for step in clock.steps():
        at_once = min(48, 1 + step // 10)
        most = max(most, threading.active_count())
        largest = max(pool.map(work, range(step, step + at_once)))
print(most <= 49)
