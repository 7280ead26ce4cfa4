import tensorflow as tf

volume_shape = tf.constant([2, 4, 4, 1, 3])
upstream = tf.ones([2, 4, 4, 1, 3])
grad = tf.raw_ops.AvgPool3DGrad(orig_input_shape=volume_shape, grad=upstream, ksize=[1, 2, 2, 2, 1],
                                strides=[1, 1, 1, 1, 1], padding="VALID")
print(grad.shape)
