import threading

import numpy as np
import tensorflow as tf

BATCH = 16


class Feeder(threading.Thread):
    """Puts samples into the queue; closes nothing when it is done."""

    def __init__(self, queue, samples):
        super().__init__(daemon=True)
        self.queue, self.samples = queue, samples

    def run(self):
        rng = np.random.default_rng(0)
        for _ in range(self.samples):
            self.queue.enqueue([tf.constant(rng.normal(size=4), tf.float32)])


def train(queue, steps):
    w = tf.Variable(tf.zeros([4, 1]))
    for step in range(steps):
        batch = queue.dequeue_many(BATCH)
        w.assign_sub(0.1 * tf.reduce_mean(batch, axis=0)[:, tf.newaxis])
        print("step", step, float(tf.norm(w)), flush=True)


def main():
    queue = tf.queue.FIFOQueue(64, [tf.float32], shapes=[[4]])
    Feeder(queue, samples=100).start()
    train(queue, steps=10)


main()
