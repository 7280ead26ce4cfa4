import os

import tensorflow as tf

luma = tf.load_op_library(os.path.abspath("build/luma.so")).luma

rgba = tf.random.uniform([32, 32, 4])
print("rgba", tf.reduce_mean(luma(rgba)).numpy(), flush=True)
print("rgb", tf.reduce_mean(luma(rgba[..., :3])).numpy(), flush=True)
