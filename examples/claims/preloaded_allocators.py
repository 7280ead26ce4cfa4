"""Claim: jemalloc or tcmalloc in LD_PRELOAD crashes TensorFlow.
Reality: no, training works with both. What does abort is memory of one allocator that is freed by another.
"""

import sys

from endings import ending_of, library

TRAIN = """
import numpy as np, keras
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones((64, 1)), verbose=0)
"""
MIX = """
import ctypes
libc, program = ctypes.CDLL("libc.so.6"), ctypes.CDLL(None)
libc.malloc.restype, program.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
program.free(libc.malloc(1000))
"""


def main():
    jemalloc, tcmalloc = library("libjemalloc.so.2"), library("libtcmalloc_minimal.so.4")
    for preloaded in (jemalloc, tcmalloc):
        end = ending_of([sys.executable, "-c", TRAIN], LD_PRELOAD=preloaded)
        print(f"training with {preloaded.split('/')[-1]}: {end.how}")
    end = ending_of([sys.executable, "-c", MIX], LD_PRELOAD=tcmalloc)
    print(f"malloc of glibc, free of tcmalloc: {end.how}; {'invalid pointer' in end.text and 'invalid pointer'}")


if __name__ == "__main__":
    main()
