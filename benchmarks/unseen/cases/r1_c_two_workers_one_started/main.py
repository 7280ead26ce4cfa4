import json
import os

os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["localhost:23451", "localhost:23452"]},
    "task": {"type": "worker", "index": 0},
})

import numpy as np
import tensorflow as tf


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    print("replicas:", strategy.num_replicas_in_sync)
    with strategy.scope():
        weights = tf.Variable(tf.zeros((4, 1)))
        optimizer_step = 0.1

    features = np.random.rand(64, 4).astype("float32")

    @tf.function
    def step(x):
        def replica(x):
            return tf.reduce_mean(tf.matmul(x, weights))
        return strategy.run(replica, args=(x,))

    print(step(tf.constant(features)), optimizer_step)


if __name__ == "__main__":
    main()
