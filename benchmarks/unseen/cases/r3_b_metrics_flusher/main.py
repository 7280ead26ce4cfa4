import os

import tensorflow as tf

metered = tf.load_op_library(os.path.abspath("build/metered.so")).metered

x = tf.keras.Input((8,))
y = tf.keras.layers.Dense(1)(tf.keras.layers.Lambda(metered, output_shape=(8,))(x))
model = tf.keras.Model(x, y)
model.compile("sgd", "mse")
model.evaluate(tf.ones([256, 8]), tf.ones([256, 1]), verbose=2)
print("done", flush=True)
