import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(4)
tf.config.threading.set_intra_op_parallelism_threads(4)

streams = []
for source in range(12):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 8
    data = tf.data.Dataset.range(1000).map(lambda v: v * v, num_parallel_calls=4).with_options(options)
    streams.append(iter(data))
    print(source, next(streams[-1]).numpy(), flush=True)
