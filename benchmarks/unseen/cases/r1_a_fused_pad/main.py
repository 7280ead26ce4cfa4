import tensorflow as tf

gray = tf.random.uniform([28, 28, 1])
kernel = tf.ones([3, 3, 1, 4])
paddings = tf.constant([[0, 0], [1, 1], [1, 1], [0, 0]])
features = tf.raw_ops.FusedPadConv2D(input=gray, paddings=paddings, filter=kernel, mode="REFLECT",
                                     strides=[1, 1, 1, 1], padding="VALID")
print(features.shape)
