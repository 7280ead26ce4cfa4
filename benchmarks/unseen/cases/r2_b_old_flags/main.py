import os

import tensorflow as tf

units = tf.load_op_library(os.path.abspath("build/rescale.so"))
print(units.rescale([50.0, 75.0], unit="percent").numpy())
