import numpy as np
import tensorflow as tf

HASH_RANGE = 2 ** 40
DIM = 8


def batches(n=3, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield (tf.constant(rng.normal(size=(4, DIM)), tf.float32),
               tf.constant(rng.integers(0, 50, size=(4, 1)), tf.int64))


class SampledLoss:
    def __init__(self, rows=50, negatives=5):
        self.weights = tf.Variable(tf.random.stateless_normal([rows, DIM], [0, 1]))
        self.biases = tf.Variable(tf.zeros([rows]))
        self.negatives = negatives

    def __call__(self, hidden, labels):
        sampled = tf.raw_ops.LearnedUnigramCandidateSampler(
            true_classes=labels, num_true=1, num_sampled=self.negatives, unique=True,
            range_max=HASH_RANGE, seed=1, seed2=2)
        return tf.nn.sampled_softmax_loss(self.weights, self.biases, labels, hidden, self.negatives,
                                          num_classes=HASH_RANGE, sampled_values=sampled)


def main():
    loss = SampledLoss()
    for hidden, labels in batches():
        print(float(tf.reduce_mean(loss(hidden, labels))))


main()
