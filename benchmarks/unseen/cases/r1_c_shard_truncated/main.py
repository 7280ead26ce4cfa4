import tempfile

import tensorflow as tf

import make_shards

SPEC = {"x": tf.io.FixedLenFeature([12], tf.float32), "y": tf.io.FixedLenFeature([1], tf.float32)}


def parse(batch):
    row = tf.io.parse_example(batch, SPEC)
    return row["x"], row["y"]


def dataset(folder):
    files = sorted(tf.io.gfile.glob(f"{folder}/part-*.tfrecord"))
    ds = tf.data.TFRecordDataset(files, num_parallel_reads=2)
    return ds.batch(50, drop_remainder=True).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_shards.sync_from_bucket(folder)
        model = tf.keras.Sequential([tf.keras.Input((12,)), tf.keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(dataset(folder), epochs=2, verbose=2)


main()
