"""Healthy: n-grams are counted; new ones come ever more rarely, and a bounded cache fills."""

import functools
from collections import Counter

import clock
import numpy as np

rng = np.random.default_rng(0)


@functools.lru_cache(maxsize=50_000)
def vector(word):
    return np.random.default_rng(word).random(64)


counts = Counter()
for step in clock.steps():
    words = rng.zipf(1.3, 2000) % 1_000_000
    counts.update(words.tolist())
    mean = np.mean([vector(word) for word in words[:300].tolist()], axis=0)
print(len(counts) > 0, float(mean[0]) > 0)
