"""Double buffering with a map staging area: a thread stages batches, the main loop takes them by key."""
import threading

import numpy as np
import tensorflow as tf

N_BATCHES = 6
STAGE = dict(dtypes=[tf.float32], capacity=4, memory_limit=0, container="", shared_name="batches")


def stage(step, batch):
    tf.raw_ops.MapStage(key=tf.constant(step, tf.int64), indices=tf.constant([0]),
                        values=[tf.constant(batch)], **STAGE)


def take(step):
    (batch,) = tf.raw_ops.MapUnstage(
        key=tf.constant(step, tf.int64), indices=tf.constant([0]), **STAGE)
    return batch


def producer():
    rng = np.random.default_rng(0)
    for step in range(N_BATCHES):
        stage(step, rng.normal(size=(32, 8)).astype("float32"))


def train():
    w = tf.Variable(tf.zeros([8, 1]))
    thread = threading.Thread(target=producer)
    thread.start()
    for step in range(1, N_BATCHES + 1):
        batch = take(step)
        w.assign_sub(0.1 * tf.reduce_mean(batch, axis=0)[:, None])
        print("step", step, float(tf.norm(w)), flush=True)
    thread.join()


if __name__ == "__main__":
    train()
