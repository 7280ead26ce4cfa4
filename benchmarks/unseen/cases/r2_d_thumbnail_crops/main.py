"""Cut detections out of frames and store them as PNG thumbnails in a TFRecord."""
import os
import tempfile

import numpy as np
import tensorflow as tf

DETECTIONS = np.array([
    # ymin, xmin, ymax, xmax (relative)
    [0.10, 0.20, 0.60, 0.70],
    [0.00, 0.00, 1.00, 1.00],
    [0.30, 0.55, 0.30, 0.90],   # tracker lost the object
    [0.25, 0.25, 0.75, 0.75],
], dtype="float32")


def frames(n, size=64):
    rng = np.random.default_rng(0)
    return rng.integers(0, 255, size=(n, size, size, 3), dtype=np.uint8)


def cut_and_encode(frame, box):
    h = tf.cast(tf.shape(frame)[0], tf.float32)
    w = tf.cast(tf.shape(frame)[1], tf.float32)
    y0, x0 = tf.cast(box[0] * h, tf.int32), tf.cast(box[1] * w, tf.int32)
    y1, x1 = tf.cast(box[2] * h, tf.int32), tf.cast(box[3] * w, tf.int32)
    crop = frame[y0:y1, x0:x1, :]
    return tf.io.encode_png(crop), tf.shape(crop)


def main():
    ds = tf.data.Dataset.from_tensor_slices((frames(len(DETECTIONS)), DETECTIONS))
    ds = ds.map(cut_and_encode, num_parallel_calls=2, deterministic=True)
    out = os.path.join(tempfile.mkdtemp(), "thumbs.tfrecord")
    with tf.io.TFRecordWriter(out) as writer:
        for png, shape in ds:
            writer.write(png.numpy())
            print("thumbnail", shape.numpy(), len(png.numpy()), "bytes")


if __name__ == "__main__":
    main()
