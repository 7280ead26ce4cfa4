import os
import tempfile

import tensorflow as tf


class ShardReader:
    def __init__(self, folder, cycle):
        self.pattern = os.path.join(folder, "*.tfrecord")
        self.cycle = cycle

    def dataset(self):
        files = tf.data.Dataset.list_files(self.pattern, shuffle=False)
        return files.interleave(tf.data.TFRecordDataset, cycle_length=self.cycle, block_length=2)


def write_shards(folder, shards=3, rows=4):
    for s in range(shards):
        with tf.io.TFRecordWriter(os.path.join(folder, f"{s}.tfrecord")) as writer:
            for r in range(rows):
                writer.write(f"{s}:{r}".encode())


def count(reader):
    total = 0
    for record in reader.dataset():
        total += len(record.numpy())
    return total


def main():
    unlimited = 2 ** 40
    with tempfile.TemporaryDirectory() as folder:
        write_shards(folder)
        print("bytes", count(ShardReader(folder, 2)))
        print("bytes", count(ShardReader(folder, unlimited)))


main()
