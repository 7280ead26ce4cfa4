"""Sentiment features from word lists in several languages, then a logistic model."""
import os
import tempfile

import numpy as np
import tensorflow as tf

from lexicon import Lexicon

REVIEWS = [
    ("en", "good food and friendly staff", 1),
    ("en", "bad service and cold food", 0),
    ("de", "gutes essen und nette leute", 1),
    ("de", "schlechtes essen", 0),
    ("fr", "bonne cuisine", 1),
]


def install_word_lists():
    folder = tempfile.mkdtemp()
    lists = {"en": "good 2.0\nfriendly 1.5\nbad -2.0\ncold -1.0\n", "de": "gutes 2.0\nnette 1.0\nschlechtes -2.0\n"}
    for language, text in lists.items():
        with open(os.path.join(folder, language + ".lex"), "w") as f:
            f.write(text)
    return folder


def features(reviews, folder):
    lexicons = {language: Lexicon(language, folder) for language, _, _ in reviews}
    rows = []
    for language, text, _ in reviews:
        scores = [lexicons[language].score(word) for word in text.split()]
        rows.append([np.mean(scores), np.min(scores), np.max(scores)])
    return np.array(rows, np.float32)


def main():
    folder = install_word_lists()
    x = features(REVIEWS, folder)
    y = np.array([label for _, _, label in REVIEWS], np.float32)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
    model.compile("sgd", "binary_crossentropy")
    model.fit(x, y, epochs=3, verbose=2)


if __name__ == "__main__":
    main()
