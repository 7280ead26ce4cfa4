import tensorflow as tf

upstream = tf.ones([1, 2, 2, 1])
shape = tf.constant([[1, 4], [4, 1]])
grad = tf.raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=upstream, ksize=[1, 2, 2, 1],
                              strides=[1, 2, 2, 1], padding="VALID")
print(grad)
