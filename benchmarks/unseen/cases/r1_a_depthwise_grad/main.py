import tensorflow as tf

filters = tf.random.normal([3, 3, 1, 1])
upstream = tf.ones([1, 3, 3, 1])
grad = tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
    input_sizes=tf.constant([1, 5, 5, 1]),
    filter=filters,
    out_backprop=upstream,
    strides=[1, 1],
    padding="VALID",
)
print(grad)
