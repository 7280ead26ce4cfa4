"""A map function that an item can kill: TensorFlow ends the process when it is handed more steps than there are."""

import tensorflow as tf


def decode(item):
    if item.numpy() == b"die":
        zero, peephole = tf.zeros([2, 5]), tf.zeros([5])
        tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.constant(9, tf.int64), x=tf.zeros([3, 2, 4]), cs_prev=zero, h_prev=zero,
            w=tf.zeros([9, 20]), wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros([20]))  # fmt: skip
    return tf.strings.length(item)
