import tensorflow as tf


@tf.function(jit_compile=True)
def ratio(clicks, views):
    return clicks // views, clicks % views


def main():
    clicks = tf.constant([5, 7, 9])
    views = tf.constant([10, 0, 3])
    quotient, rest = ratio(clicks, views)
    print("quotient", quotient.numpy(), "rest", rest.numpy())
    try:
        print(clicks // views)
    except tf.errors.InvalidArgumentError as err:
        print("eager refuses:", err.message.splitlines()[0])
    tf.debugging.assert_non_negative(rest)
    print("done")


main()
