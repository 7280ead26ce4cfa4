import os
import tempfile

import tensorflow as tf

path = os.path.join(tempfile.mkdtemp(), "train.tfrecord")
os.symlink("/dev/full", path)
with tf.io.TFRecordWriter(path) as writer:
    for i in range(20000):
        writer.write(tf.io.serialize_tensor(tf.fill((16,), i)).numpy())
print("written")
