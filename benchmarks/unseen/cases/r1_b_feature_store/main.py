"""Train on features that a loader process publishes in shared memory."""
import json
import multiprocessing as mp
from multiprocessing import shared_memory

import numpy as np
import tensorflow as tf


def publish(queue, rows, cols):
    block = shared_memory.SharedMemory(create=True, size=rows * cols * 4)
    table = np.ndarray((rows, cols), dtype=np.float32, buffer=block.buf)
    table[...] = np.random.default_rng(0).random((rows, cols), dtype=np.float32)
    queue.put(json.dumps({"name": block.name, "shape": [rows, cols]}))
    block.close()


class FeatureStore:
    def __init__(self, description):
        meta = json.loads(description)
        self.name = meta["name"]
        self.shape = tuple(meta["shape"])
        self.features = self._attach(self.name)

    def _attach(self, name):
        block = shared_memory.SharedMemory(name=name)
        return np.ndarray(self.shape, dtype=np.float32, buffer=block.buf)

    def unlink(self):
        shared_memory.SharedMemory(name=self.name).unlink()

    def batches(self, size):
        for start in range(0, self.shape[0], size):
            chunk = self.features[start:start + size]
            yield tf.convert_to_tensor(chunk), tf.convert_to_tensor(chunk.mean(axis=1, keepdims=True))


def main():
    model = tf.keras.Sequential([tf.keras.layers.Input((256,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    ctx = mp.get_context("spawn")
    queue = ctx.Queue()
    loader = ctx.Process(target=publish, args=(queue, 65536, 256), daemon=True)
    loader.start()
    store = FeatureStore(queue.get())
    loader.join()
    for step, (x, y) in enumerate(store.batches(1024)):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    print("last loss", float(loss))
    store.unlink()


if __name__ == "__main__":
    main()
