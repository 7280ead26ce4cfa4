"""Classify support tickets; words are looked up by our C vocabulary."""
import numpy as np
import tensorflow as tf

from vocab import Vocab

TICKETS = [
    ("The printer does not print", 0),
    ("printer out of paper again", 0),
    ("cannot log in to the portal", 1),
    ("portal rejects my password", 1),
] * 32

vocab = Vocab(sorted({w for text, _ in TICKETS for w in text.lower().split()}))


def encode(text):
    ids = vocab.encode(text.numpy().decode())
    row = np.zeros(8, np.int32)
    row[:len(ids)] = np.array(ids) + 1
    return row


def prepare(text, label):
    ids = tf.py_function(encode, [text], tf.int32)
    ids.set_shape([8])
    return ids, label


def main():
    texts, labels = zip(*TICKETS)
    data = tf.data.Dataset.from_tensor_slices((list(texts), list(labels)))
    data = data.map(prepare, num_parallel_calls=2).batch(16)
    model = tf.keras.Sequential([
        tf.keras.layers.Embedding(64, 8),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    model.fit(data, epochs=2, verbose=2)


if __name__ == "__main__":
    main()
