"""Healthy: a replay buffer of reinforcement learning fills up to its length and then stays."""

import random
from collections import deque

import clock
import keras
import numpy as np

rng = np.random.default_rng(0)
network = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(32, "relu"), keras.layers.Dense(4)])
network.compile("adam", "mse")
memory = deque(maxlen=40_000)
state = rng.random((42, 42), dtype="float32")
for step in clock.steps():
    for _ in range(16):
        following = np.roll(state, 1, axis=0) + rng.normal(scale=0.01, size=state.shape).astype("float32")
        memory.append((state, int(rng.integers(4)), float(rng.normal()), following))
        state = following
    batch = random.sample(memory, min(16, len(memory)))
    states = np.stack([entry[0] for entry in batch])
    targets = np.array([[entry[2]] * 4 for entry in batch], "float32")
    network.train_on_batch(states, targets)
    if step % 1000 == 0:
        print(step, len(memory), flush=True)
print(len(memory), "kept")
