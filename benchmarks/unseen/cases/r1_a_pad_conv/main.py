import tensorflow as tf

image = tf.ones([1, 3, 3, 1])
kernel = tf.ones([1, 1, 1, 2])
pad = 1 << 30
out = tf.nn.conv2d(image, kernel, strides=[1, 1, 1, 1], padding=[[0, 0], [pad, 1], [pad, 1], [0, 0]])
print(out.shape)
