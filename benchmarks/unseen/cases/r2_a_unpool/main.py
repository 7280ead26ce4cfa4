import tensorflow as tf

POOL = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")


class Encoder(tf.keras.layers.Layer):
    def call(self, x):
        return tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", include_batch_in_index=True)


class Unpool(tf.keras.layers.Layer):
    """Puts pooled values back to where they came from."""

    def call(self, like, pooled, argmax):
        return tf.raw_ops.MaxPoolGradWithArgmax(input=like, grad=pooled, argmax=argmax, **POOL)


def restore_one(encoder, unpool, images, index):
    pooled, argmax = encoder(images)
    one = slice(index, index + 1)
    return unpool(images[one], pooled[one], argmax[one])


def main():
    images = tf.random.stateless_normal([3, 4, 4, 2], [1, 2])
    encoder, unpool = Encoder(), Unpool()
    for index in range(3):
        restored = restore_one(encoder, unpool, images, index)
        print(index, float(tf.reduce_sum(restored)))


main()
