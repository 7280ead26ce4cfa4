import multiprocessing as mp

import numpy as np


def simulate(seed, results):
    rng = np.random.default_rng(seed)
    paths = rng.normal(size=(2000, 250)).cumsum(axis=1)
    results.put((seed, paths.astype("float32")))


def main():
    import tensorflow as tf

    ctx = mp.get_context("spawn")
    results = ctx.Queue()
    workers = [ctx.Process(target=simulate, args=(seed, results)) for seed in (1, 2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    paths = tf.concat([tf.constant(results.get()[1]) for _ in workers], axis=0)
    print("mean end value", tf.reduce_mean(paths[:, -1]).numpy())


if __name__ == "__main__":
    main()
