import ctypes
import os

import numpy as np

_lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libundist.so"))
_lib.undistort.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]


def apply(frame, calib):
    out = np.array(frame, dtype=np.float64)
    table = calib.ctypes.data if calib is not None else None
    _lib.undistort(out.ctypes.data, table, out.size)
    return out
