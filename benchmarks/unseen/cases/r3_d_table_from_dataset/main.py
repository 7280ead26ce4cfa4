import tensorflow as tf

pairs = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5]).map(lambda x: (x, x * 2))

table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(
        tf.constant([1, 2, 3], tf.int64), tf.constant([0, 0, 0], tf.int64)),
    default_value=-1)
print("size", table.size().numpy())

# refresh the table from the pipeline
tf.raw_ops.InitializeTableFromDataset(
    table_handle=table.resource_handle, dataset=pairs._variant_tensor)
print("size", table.size().numpy())
