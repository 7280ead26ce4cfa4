import ctypes
import weakref

import numpy as np

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


class Block:
    """Rows of floats in malloc memory; the memory goes back when the block is collected."""

    def __init__(self, address, rows, cols):
        self.address, self.rows, self.cols = address, rows, cols
        raw = (ctypes.c_float * (rows * cols)).from_address(address)
        self.array = np.ctypeslib.as_array(raw).reshape(rows, cols)
        self._finalizer = weakref.finalize(self, _libc.free, address)

    @classmethod
    def allocate(cls, rows, cols):
        return cls(_libc.malloc(rows * cols * 4), rows, cols)

    def reshaped(self, rows, cols):
        assert rows * cols == self.rows * self.cols
        return Block(self.address, rows, cols)
