import tensorflow as tf

MAX_STEPS = 2_000_000_000  # "never stop early"
HIDDEN = 16


class GreedyDecoder(tf.Module):
    def __init__(self, vocab):
        super().__init__()
        self.embed = tf.Variable(tf.random.normal([vocab, HIDDEN], seed=1))
        self.out = tf.Variable(tf.random.normal([HIDDEN, vocab], seed=2))

    @tf.function
    def decode(self, start, max_steps):
        tokens = tf.TensorArray(tf.int32, size=max_steps, element_shape=[])
        token = start
        for step in tf.range(10):
            logits = tf.linalg.matvec(self.out, tf.gather(self.embed, token), transpose_a=True)
            token = tf.argmax(logits, output_type=tf.int32)
            tokens = tokens.write(step, token)
        return tokens.gather(tf.range(10))


def main():
    decoder = GreedyDecoder(vocab=50)
    for start in (1, 2):
        ids = decoder.decode(tf.constant(start), tf.constant(MAX_STEPS))
        print(start, ids.numpy())


main()
