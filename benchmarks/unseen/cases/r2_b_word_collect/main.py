"""Count the words of a corpus with our own op and build a vocabulary from them."""
import collections
import os
import random

import tensorflow as tf

text_ops = tf.load_op_library(os.path.abspath("build/collect_words.so"))
STEMS = ["transport", "mechanical", "ornamental", "harbour", "library", "of", "in", "evening"]


def corpus(lines, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(STEMS) + rng.choice(["", "s", "ation"]) for _ in range(30)) for _ in range(lines)]


def split(text):
    return text_ops.collect_words(text, shortest=4)


def vocabulary(lines, size):
    counts = collections.Counter()
    for start in range(0, len(lines), 20000):
        words = split(tf.constant(lines[start:start + 20000]))
        counts.update(words.numpy().tolist())
    return [word for word, _ in counts.most_common(size)]


def main():
    lines = corpus(60000, seed=1)
    known = vocabulary(lines, size=16)
    lookup = tf.keras.layers.StringLookup(vocabulary=[w.decode() for w in known])
    print(lookup(tf.strings.split(lines[0])[:6]).numpy())


if __name__ == "__main__":
    main()
