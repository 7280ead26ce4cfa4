"""Claim: one damaged image or record crashes TensorFlow.
Reality: not found. Damaged files raise or decode; what happens instead is that many damaged JPEGs decode without any
error, to a wrong picture.
"""

import base64
import random
import struct
from pathlib import Path

import numpy as np
import tensorflow as tf

EACH = 100
GIF = base64.b64decode(
    "R0lGODdhGAAYAIIAAJnchC3cZJmVky2VRJlTgC1TJpkWIi0WCiwAAAAAGAAYAEAIqwAPCBxIUKCBgwgTHizAsKHDAgQiSpwocYDF"
    "iwMCaBTAsaNFACBBCihIUqHJiAwxYuzIsuXBjBpjagwJICPNmyQLmtz5sGcBAxSD+sRIsaVHlSuNcjTAEqPMmQA83gz5VCbVAFNp"
    "5tS5M+HWgV0VEvT5E2FQlGQbnqWYluFaiRwdIh2g1Ojci3WXAiVwN2PdASI5qnxqN6vFqlBBAs4KAHHixoxBOsYqmTLjgAA7"
)
WEBP = base64.b64decode(
    "UklGRuYAAABXRUJQVlA4INoAAAAwBwCdASoYABgAPmUqj0WkIqEYBgBABkS2AE6ZQjq7xr8cuTP3jbDOY+OdYAe5mGJAtlwb8AA5"
    "q7nTBz75GghS0AAA/v/FGBT2v30OUweo6DT84Vqsw6aZ/gBgUsnb929k3JTyeUKgszBXZ1F1x1Ig8iox5a22drxPa3bJTTv743D/"
    "4Tcv4r1Y0fKfRLxFmAihfXi6EjZEVpBfSH+/+f9sJyhJeYKJ/264/xX0eWDeGZg3+XXT2+P4cHphzjEEsG+cvdMuORI5i+hQBSK/"
    "P2B7XvEo1qnuWQAAAA=="
)


def damaged(data, rng):
    """Flips some bytes, cuts the end off, or zeroes a block."""
    data, kind, at = bytearray(data), rng.randrange(3), rng.randrange(len(data))
    if kind == 0:
        for _ in range(rng.randint(1, 10)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 1:
        del data[at:]
    else:
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    return bytes(data)


def samples():
    picture = tf.cast(tf.random.stateless_uniform([64, 64, 3], seed=[1, 2], maxval=256, dtype=tf.int32), tf.uint8)
    smooth = tf.cast(tf.image.resize(picture[:8, :8], [64, 64]), tf.uint8)
    bmp = b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + 192, 0, 54, 40, 8, 8, 1, 24, 0, 192, 0, 0, 0, 0) + bytes(192)
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0] * 50))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    with tf.io.TFRecordWriter("good.tfrecord") as writer:
        for _ in range(5):
            writer.write(example)
    yield "JPEG", tf.io.encode_jpeg(smooth).numpy(), tf.io.decode_jpeg
    yield "PNG", tf.io.encode_png(smooth).numpy(), tf.io.decode_png
    yield "GIF", GIF, tf.io.decode_gif
    yield "BMP", bmp, tf.io.decode_bmp
    if hasattr(tf.io, "decode_webp"):
        yield "WebP", WEBP, tf.io.decode_webp
    yield "Example", example, read_example
    yield "TFRecord", Path("good.tfrecord").read_bytes(), read_records


def read_example(data):
    return tf.io.parse_single_example(data, {"x": tf.io.VarLenFeature(tf.float32)})["x"].values


def read_records(data):
    Path("damaged.tfrecord").write_bytes(data)
    return np.array([record.numpy() for record in tf.data.TFRecordDataset("damaged.tfrecord")])


def main():
    rng, tried = random.Random(0), 0
    for name, data, read in samples():
        right, silent, wrong = read(data), 0, 0
        for _ in range(EACH):
            try:
                result = read(damaged(data, rng))
            except (tf.errors.OpError, UnicodeDecodeError):  # the latter: the message quotes the damaged bytes
                continue
            silent += 1
            wrong += result.shape != right.shape or not np.array_equal(result, right)
        tried += EACH
        print(f"{name}: read without an error {silent} of {EACH}, wrong {wrong}")
    print(f"{tried} damaged files, and still alive")


if __name__ == "__main__":
    main()
