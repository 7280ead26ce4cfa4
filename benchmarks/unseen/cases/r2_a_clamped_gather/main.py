import tensorflow as tf


@tf.function(jit_compile=True)
def lookup(table, ids):
    return tf.gather(table, ids)


def main():
    table = tf.reshape(tf.range(12.0), [4, 3])
    ids = tf.constant([0, 3, 2 ** 30])
    print("compiled", lookup(table, ids).numpy()[-1])
    try:
        tf.gather(table, ids)
    except tf.errors.InvalidArgumentError as err:
        print("eager:", str(err).split("[")[0][-60:])
    stacked = tf.TensorArray(tf.float32, size=3).unstack(lookup(table, ids)).stack()
    print(stacked.shape)


if __name__ == "__main__":
    main()
