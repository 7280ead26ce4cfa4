import csv
import os
import tempfile

import tensorflow as tf

KB = 1024
READ_BUFFER = 1024 * 1024 * 1024 * KB  # KiB already counted above


def write_shards(folder, shards=2, rows=20):
    paths = []
    for s in range(shards):
        path = os.path.join(folder, f"part-{s:02d}.csv")
        with open(path, "w", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerows([[s, r, r * 0.5] for r in range(rows)])
        paths.append(path)
    return paths


def parse(line):
    shard, row, value = tf.io.decode_csv(line, [0, 0, 0.0])
    return {"shard": shard, "row": row}, value


def pipeline(paths):
    ds = tf.data.TextLineDataset(paths, buffer_size=READ_BUFFER)
    return ds.map(parse).batch(10).prefetch(1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        total = 0.0
        for _, values in pipeline(write_shards(folder)):
            total += float(tf.reduce_sum(values))
        print("total", total)


main()
