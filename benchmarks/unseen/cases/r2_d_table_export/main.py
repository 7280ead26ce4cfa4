import tensorflow as tf

vocab = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(
        tf.constant([10, 20, 30], tf.int64), tf.constant([0, 1, 2], tf.int64)),
    default_value=-1)
print("lookup", vocab.lookup(tf.constant([20], tf.int64)).numpy())
keys, values = tf.raw_ops.LookupTableExportV2(
    table_handle=vocab.resource_handle, Tkeys=tf.string, Tvalues=tf.int64)
print(keys, values)
