"""Share a preprocessed volume with a native viewer by address, then check it."""
import ctypes
import gc

import numpy as np
import tensorflow as tf


class VolumeRef(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("n", ctypes.c_size_t)]


def normalise(volume):
    v = tf.cast(volume, tf.float32)
    return ((v - tf.reduce_mean(v)) / tf.math.reduce_std(v)).numpy()


def export_volume(volume):
    """Return a C struct that points at the contiguous float64 voxels."""
    voxels = np.ascontiguousarray(normalise(volume).T, dtype=np.float64)
    return VolumeRef(voxels.ctypes.data, voxels.size)


def histogram(ref, bins=16):
    pointer = ctypes.cast(ref.address, ctypes.POINTER(ctypes.c_double))
    voxels = np.ctypeslib.as_array(pointer, shape=(ref.n,))
    return np.histogram(voxels, bins=bins)[0]


def main():
    rng = np.random.default_rng(2)
    volume = rng.integers(0, 4096, size=(64, 256, 384), dtype=np.int16)
    ref = export_volume(volume)
    gc.collect()
    print("exported", ref.n, "voxels")
    print(histogram(ref))


main()
