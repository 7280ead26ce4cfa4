import ctypes
import os

import numpy as np

_lib = ctypes.CDLL(os.path.abspath("build/libmesh.so"))
_lib.mesh_sphere.restype = ctypes.c_void_p
_lib.mesh_count.argtypes = [ctypes.c_void_p]
_lib.mesh_count.restype = ctypes.c_int64
_lib.mesh_points.argtypes = [ctypes.c_void_p]
_lib.mesh_points.restype = ctypes.POINTER(ctypes.c_float)
_lib.mesh_free.argtypes = [ctypes.c_void_p]


class Mesh:
    def __init__(self, rings, segments):
        self._handle = _lib.mesh_sphere(rings, segments)

    def __del__(self):
        _lib.mesh_free(self._handle)

    @property
    def points(self):
        return np.ctypeslib.as_array(_lib.mesh_points(self._handle), shape=(_lib.mesh_count(self._handle), 3))
