import os

import tensorflow as tf

curve = tf.load_op_library(os.path.abspath("build/curve.so")).curve

for kind in ("swish", "mish", "Mish"):
    layer = tf.keras.layers.Dense(8, activation=lambda x, kind=kind: curve(x, kind=kind))
    print(kind, float(tf.reduce_mean(layer(tf.ones([4, 4])))), flush=True)
