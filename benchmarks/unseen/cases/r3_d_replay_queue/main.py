"""Actor threads put transitions into a TensorFlow queue, the learner takes them out."""
import threading

import numpy as np
import tensorflow as tf

UNBOUNDED = int(np.iinfo(np.uint64).max)     # episodes have no fixed length


class ReplayQueue:
    def __init__(self, capacity, obs_shape, episode_length=UNBOUNDED):
        obs_shape = list(obs_shape)
        self.queue = tf.queue.FIFOQueue(
            capacity,
            dtypes=[tf.float32, tf.float32],
            shapes=[[episode_length] + obs_shape, [episode_length]],
            names=["obs", "reward"],
        )

    def put(self, obs, reward):
        self.queue.enqueue({"obs": obs, "reward": reward})

    def take(self):
        return self.queue.dequeue()


def actor(replay, seed, n):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        replay.put(rng.normal(size=(20, 6)).astype("float32"), rng.normal(size=20).astype("float32"))


def learn(replay, n):
    total = 0.0
    for _ in range(n):
        batch = replay.take()
        total += float(tf.reduce_sum(batch["reward"]))
    return total


def main():
    print("warm up", learn_from(ReplayQueue(8, (6,), episode_length=20)))
    print("unbounded", learn_from(ReplayQueue(8, (6,))))


def learn_from(replay):
    actors = [threading.Thread(target=actor, args=(replay, s, 4), daemon=True) for s in range(2)]
    for a in actors:
        a.start()
    return learn(replay, 8)


if __name__ == "__main__":
    main()
