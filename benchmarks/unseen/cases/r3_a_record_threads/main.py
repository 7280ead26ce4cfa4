import os
import tempfile

import tensorflow as tf

folder = tempfile.mkdtemp()
path = os.path.join(folder, "a.rec")
with tf.io.TFRecordWriter(path) as writer:
    writer.write(b"one")
records = tf.raw_ops.RecordInput(file_pattern=path, file_parallelism=2 ** 31, batch_size=1)
print(records)
