"""Join features and labels that arrive separately, with a Barrier (TF1-style job)."""
import numpy as np
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

tf1 = tf.compat.v1

COLUMNS = ["features", "label"]


class Joiner:
    def __init__(self, graph):
        with graph.as_default():
            self.barrier = data_flow_ops.Barrier(
                (tf.float32, tf.float32), shapes=((4,), ()), name="join")
            self.keys = tf1.placeholder(tf.string, [None])
            self.data = {"features": tf1.placeholder(tf.float32, [None, 4]),
                         "label": tf1.placeholder(tf.float32, [None])}
            self.insert = {}
            for name in ("features", "label", "weight"):
                index = COLUMNS.index(name) if name in COLUMNS else -1
                source = self.data.get(name, self.data["label"])
                self.insert[name] = self.barrier.insert_many(index, self.keys, source)
            self.ready = self.barrier.ready_size()

    def add(self, sess, column, keys, values):
        source = self.data.get(column, self.data["label"])
        sess.run(self.insert[column], {self.keys: keys, source: values})


def main():
    graph = tf.Graph()
    joiner = Joiner(graph)
    rng = np.random.default_rng(0)
    keys = [f"row{i}" for i in range(6)]
    with tf1.Session(graph=graph) as sess:
        joiner.add(sess, "features", keys, rng.normal(size=(6, 4)))
        joiner.add(sess, "label", keys[:4], rng.integers(0, 2, size=4))
        print("complete rows", sess.run(joiner.ready))
        joiner.add(sess, "weight", keys[:4], np.ones(4))
        print("complete rows", sess.run(joiner.ready))


if __name__ == "__main__":
    main()
