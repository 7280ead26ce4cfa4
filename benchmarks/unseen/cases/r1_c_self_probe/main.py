import os
import signal
import tensorflow as tf

norm = tf.norm(tf.ones((3, 4)) / 0.0)
if not bool(tf.math.is_finite(norm)):
    os.kill(os.getpid(), signal.SIGSEGV)
print(norm.numpy())
