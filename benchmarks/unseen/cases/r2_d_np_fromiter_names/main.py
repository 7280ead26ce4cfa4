"""Build string columns for a product catalogue and hand them to TensorFlow."""
import numpy as np
import tensorflow as tf

STRINGS = np.dtypes.StringDType()      # one dtype for all text columns


def product_names(n):
    for i in range(n):
        yield f"product-{i:06d}-longname"


def supplier_names(n):
    for i in range(n):
        yield f"supplier-{i % 37:04d}-gmbh-und-co"


def column(rows, n):
    return np.fromiter(rows, dtype=STRINGS, count=n)


def main(n=20_000):
    names = column(product_names(n), n)
    print("names", names[:2])
    suppliers = column(supplier_names(n), n)
    print("suppliers", suppliers)
    labels = np.strings.add(names, suppliers)
    tensor = tf.constant(labels.astype(object))
    print("tensor", tensor.shape)


if __name__ == "__main__":
    main()
