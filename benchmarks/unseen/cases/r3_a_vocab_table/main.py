import os
import tempfile

import tensorflow as tf

WORDS = ["the", "quick", "brown", "fox", "jumps"]
VOCAB_LIMIT = 1 << 40


class TextIndexer:
    def __init__(self, vocab_path, limit):
        init = tf.lookup.TextFileInitializer(
            vocab_path, key_dtype=tf.int64, key_index=tf.lookup.TextFileIndex.LINE_NUMBER,
            value_dtype=tf.string, value_index=tf.lookup.TextFileIndex.WHOLE_LINE, vocab_size=limit)
        self.words = tf.lookup.StaticHashTable(init, default_value="<unk>")

    def decode(self, ids):
        return tf.strings.reduce_join(self.words.lookup(tf.constant(ids, tf.int64)), separator=" ")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vocab.txt")
        with open(path, "w") as handle:
            handle.write("\n".join(WORDS))
        indexer = TextIndexer(path, VOCAB_LIMIT)
        print(indexer.decode([0, 3, 4]).numpy())


main()
