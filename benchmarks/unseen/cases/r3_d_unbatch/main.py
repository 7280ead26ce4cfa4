import tensorflow as tf

scores = tf.constant([1, 2, 3], dtype=tf.int32)
index = tf.constant([[0, 0, 3]], dtype=tf.int64)
mine = tf.raw_ops.Unbatch(
    batched_tensor=scores, batch_index=tf.reshape(index, [-1]),
    id=tf.constant(0, tf.int64), timeout_micros=1000)
print(mine)
