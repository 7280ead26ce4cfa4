from concurrent.futures import ProcessPoolExecutor
import multiprocessing as mp

import numpy as np


def load_calibration(name):
    table = {"left": np.linspace(0, 1, 64), "right": np.linspace(1, 2, 64)}
    return table.get(name)


def undistort(job):
    import fastundist

    camera, frame = job
    calib = load_calibration(camera)
    return fastundist.apply(frame, calib)


def main():
    import tensorflow as tf

    frames = np.random.default_rng(1).random((6, 64)).astype(np.float64)
    cameras = ["left", "right", "left", "rear", "right", "left"]
    with ProcessPoolExecutor(2, mp_context=mp.get_context("spawn")) as pool:
        fixed = list(pool.map(undistort, zip(cameras, frames)))
    batch = tf.stack(fixed)
    print("mean", tf.reduce_mean(batch).numpy())


if __name__ == "__main__":
    main()
