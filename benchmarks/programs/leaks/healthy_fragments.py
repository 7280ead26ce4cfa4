"""Healthy: no TensorFlow; arrays of random sizes come and go, and the heap is full of holes."""

import clock
import numpy as np

rng = np.random.default_rng(0)
pool = [np.zeros(1)] * 3000
total = 0.0
for step in clock.steps():
    for _ in range(20):
        size = int(np.exp(rng.uniform(3, 11.5)))
        pool[rng.integers(len(pool))] = rng.random(size)
    words = {str(number): [number] * int(rng.integers(1, 50)) for number in rng.integers(0, 1000, 100)}
    total += float(pool[0].sum()) + len(words)
print(total > 0)
