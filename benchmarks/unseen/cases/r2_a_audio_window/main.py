import tensorflow as tf

rate = 100
tone = tf.sin(tf.range(rate, dtype=tf.float32))[:, tf.newaxis]
window = -1  # "whole signal"
spec = tf.raw_ops.AudioSpectrogram(input=tone, window_size=window, stride=10)
print(spec.shape)
