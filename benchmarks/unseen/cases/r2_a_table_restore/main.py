import tensorflow as tf

table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, default_value=-1, empty_key=-2, deleted_key=-3)
keys = tf.constant([10, 20, 30], tf.int64)
saved_values = tf.constant([7], tf.int64)
tf.raw_ops.LookupTableImportV2(table_handle=table.resource_handle, keys=keys, values=saved_values)
print(table.size())
