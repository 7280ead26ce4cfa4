import ctypes
import os

import numpy as np

_lib = ctypes.CDLL(os.path.abspath("build/libnormalise.so"))
_lib.normalise.argtypes = [ctypes.POINTER(ctypes.c_float), ctypes.c_size_t]
_lib.normalise.restype = None


def open_stack(path, side):
    return np.load(path, mmap_mode="r").reshape(-1, side, side)


def normalise(image):
    image = np.ascontiguousarray(image, dtype=np.float32)
    _lib.normalise(image.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), image.size)
    return image
