import numpy as np
import tensorflow as tf

scores = tf.nn.softmax(tf.constant(np.arange(6.0).reshape(2, 3)))
print(scores.numpy())
