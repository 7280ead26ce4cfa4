import queue
import threading

import numpy as np
import tensorflow as tf

SENSORS = {"s1": 0.5, "s2": 1.5, "s3": None}


class Producer(threading.Thread):
    def __init__(self, out, batches):
        super().__init__(name="producer", daemon=True)
        self.out = out
        self.batches = batches

    def run(self):
        rng = np.random.default_rng(7)
        for i in range(self.batches):
            gain = SENSORS[f"s{i // 10 + 1}"]
            self.out.put((rng.normal(size=(32, 4)) * gain).astype("float32"))
        self.out.put(None)


def stream(q):
    while True:
        item = q.get()
        if item is None:
            return
        yield item, item.sum(axis=1, keepdims=True)


def main():
    q = queue.Queue(maxsize=4)
    Producer(q, batches=30).start()
    spec = (tf.TensorSpec((32, 4), tf.float32), tf.TensorSpec((32, 1), tf.float32))
    ds = tf.data.Dataset.from_generator(lambda: stream(q), output_signature=spec).prefetch(1)
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(ds, epochs=1, verbose=2)


main()
