"""Reinforcement learning: transitions go to a replay buffer in shared memory."""
from multiprocessing import shared_memory

import numpy as np
import tensorflow as tf


class SharedReplay:
    def __init__(self, capacity, observation):
        self.capacity = capacity
        self.count = 0
        self.block = shared_memory.SharedMemory(create=True, size=capacity * observation * 4)
        self.states = np.ndarray((capacity, observation), np.float32, buffer=self.block.buf)

    def add(self, states):
        for state in states:
            self.states[self.count % self.capacity] = state
            self.count += 1

    def sample(self, size, rng):
        return self.states[rng.integers(0, min(self.count, self.capacity), size=size)]


class Environment:
    def __init__(self, observation, seed):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(observation, np.float32)

    def rollout(self, policy, steps):
        visited = []
        for _ in range(steps):
            self.state = 0.9 * self.state + self.rng.normal(scale=0.1, size=self.state.shape).astype(np.float32)
            visited.append(self.state)
        policy(tf.constant(visited[-1][None]))
        return visited


def main():
    observation = 4096
    replay = SharedReplay(capacity=20000, observation=observation)
    policy = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="tanh"), tf.keras.layers.Dense(2)])
    policy.compile("sgd", "mse")
    env, rng = Environment(observation, 1), np.random.default_rng(2)
    for episode in range(40):
        replay.add(env.rollout(policy, steps=400))
        batch = replay.sample(64, rng)
        loss = policy.train_on_batch(batch, np.zeros((64, 2), np.float32))
        if episode % 5 == 0:
            print("episode", episode, "stored", replay.count, "loss %.4f" % loss, flush=True)
    replay.block.unlink()


if __name__ == "__main__":
    main()
