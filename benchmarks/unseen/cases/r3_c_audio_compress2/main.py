import os
import tempfile

from dynamics import limiter

import h5py
import numpy as np
import tensorflow as tf


def features(clip):
    stft = tf.signal.stft(tf.constant(clip), frame_length=256, frame_step=128)
    return tf.math.log1p(tf.abs(stft)).numpy()


def main():
    rng = np.random.default_rng(6)
    clips = rng.normal(size=(12, 8000)).astype("float32")
    spectra = np.stack([features(limiter(c)) for c in clips])
    print("spectra", spectra.shape, flush=True)
    with h5py.File(os.path.join(tempfile.mkdtemp(), "spectra.h5"), "w") as f:
        f.create_dataset("spectra", data=spectra, compression="gzip")
        print("stored", f["spectra"].id.get_storage_size())


main()
