import ctypes
import os

import numpy as np

_lib = ctypes.CDLL(os.path.abspath("build/libregions.so"))
_u8 = np.ctypeslib.ndpointer(np.uint8, ndim=2, flags="C_CONTIGUOUS")
_i32 = np.ctypeslib.ndpointer(np.int32, ndim=2, flags="C_CONTIGUOUS")
_lib.label_regions.argtypes = [_u8, _i32, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]


def label_regions(mask):
    mask = np.ascontiguousarray(mask, np.uint8)
    labels = np.zeros(mask.shape, np.int32)
    largest = ctypes.c_int()
    count = _lib.label_regions(mask, labels, *mask.shape, ctypes.byref(largest))
    return labels, count, largest.value
