"""Legacy graph-mode input function: split a packed batch of tokens into sentences."""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()

EMB = 8


def lengths_from_offsets(offsets):
    """Sentence lengths from the end offsets that the tokenizer writes."""
    return np.diff(np.concatenate([[0], offsets])).astype("int64")


def build(n_sentences):
    tokens = tf1.placeholder(tf.float32, [None, EMB], name="tokens")
    lengths = tf1.placeholder(tf.int64, [n_sentences], name="lengths")
    packed = tf.TensorArray(tf.float32, size=n_sentences, infer_shape=False)
    sentences = packed.split(tokens, lengths)
    means = [tf.reduce_sum(sentences.read(i), axis=0) for i in range(n_sentences)]
    return tokens, lengths, tf.stack(means)


def main():
    batches = [
        np.array([3, 7, 9]),
        np.array([2, 2, 6]),
        np.array([5, 4, 8]),      # tokenizer bug: offsets not sorted
    ]
    tokens, lengths, summary = build(3)
    with tf1.Session() as sess:
        for offsets in batches:
            emb = np.ones((int(offsets[-1]), EMB), "float32")
            out = sess.run(summary, {tokens: emb, lengths: lengths_from_offsets(offsets)})
            print("batch", offsets, out[:, 0])


main()
