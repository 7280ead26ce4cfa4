"""Clean an address table before it goes into a StringLookup layer."""
import numpy as np
import tensorflow as tf

ROWS = [
    ["Berlin", "10115"],
    ["n/a", "20095"],
    ["Hamburg", "n/a"],
    ["Muenchen", "80331"],
]
PLACEHOLDER = "unknown (to be completed by hand)"


def load():
    return np.array(ROWS, dtype=np.dtypes.StringDType())


def missing(table):
    return np.nonzero(table == "n/a")


def patch(table):
    rows, cols = missing(table)
    print("patching", len(rows), "cells")
    table[rows, cols] = np.array(PLACEHOLDER, dtype=np.dtypes.StringDType())
    return table


def main():
    table = patch(load())
    lookup = tf.keras.layers.StringLookup()
    lookup.adapt(tf.constant(table[:, 0].astype(object)))
    print(lookup.get_vocabulary())


if __name__ == "__main__":
    main()
