import tensorflow as tf

WIDTH = 2 ** 14


def make_batch(rows):
    return tf.random.stateless_uniform([rows, WIDTH], [1, 2])


def run_with_fallback(rows):
    while rows:
        try:
            batch = make_batch(rows)
            return rows, float(tf.reduce_mean(batch))
        except tf.errors.ResourceExhaustedError as err:
            print("too large:", rows, type(err).__name__)
            rows //= 2 ** 20
    raise RuntimeError("no batch size fits")


def main():
    least = tf.constant([-2 ** 31])
    print("INT_MIN // -1 =", (least // -1).numpy())
    rows, mean = run_with_fallback(2 ** 30)
    print("rows", rows, "mean", round(mean, 3))


if __name__ == "__main__":
    main()
