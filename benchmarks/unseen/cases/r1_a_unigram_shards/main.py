import tensorflow as tf

counts = [10.0, 5.0, 3.0, 1.0]
labels = tf.constant([[0], [2]], tf.int64)
sampled = tf.random.fixed_unigram_candidate_sampler(
    true_classes=labels, num_true=1, num_sampled=2, unique=False, range_max=4,
    unigrams=counts, num_shards=1 << 32, shard=0)
print(sampled)
