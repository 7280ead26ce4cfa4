import multiprocessing as mp

import tensorflow as tf

from cleaning import clean_row


def main():
    rows = [f"{i},{i * 0.5:.2f},{i % 3}" for i in range(60)]
    rows[37] = "37,,1"
    with mp.get_context("spawn").Pool(2) as pool:
        table = pool.map(clean_row, rows, chunksize=4)
    features = tf.constant(table)
    print("rows", features.shape, "mean", tf.reduce_mean(features, axis=0).numpy())


if __name__ == "__main__":
    main()
