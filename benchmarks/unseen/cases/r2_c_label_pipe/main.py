import os
import tempfile

import tensorflow as tf

path = os.path.join(tempfile.mkdtemp(), "labels.txt")
os.mkfifo(path)
ds = tf.data.TextLineDataset(path).map(tf.strings.strip).batch(8)
for batch in ds:
    print(batch)
