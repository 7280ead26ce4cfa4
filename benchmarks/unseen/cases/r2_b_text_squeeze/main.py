import sys

import tensorflow as tf

sys.path.insert(0, "build")
import squeeze

LONG = "word   and   " * 60
lines = tf.data.Dataset.from_tensor_slices([LONG, LONG * 2, "  a short    line ", LONG])
lines = lines.map(lambda s: tf.numpy_function(squeeze.squeeze, [s], tf.string))
for line in lines:
    print(tf.strings.length(line).numpy(), flush=True)
