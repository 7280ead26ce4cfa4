import ctypes
import gc
import os

import numpy as np
import tensorflow as tf

PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_double)
lib = ctypes.CDLL(os.path.abspath("build/libsolver.so"))
lib.solver_set_progress.argtypes = [PROGRESS]
lib.solver_run.argtypes = [ctypes.POINTER(ctypes.c_double), ctypes.c_long, ctypes.c_int]
lib.solver_run.restype = ctypes.c_double


def watch(history):
    def progress(step, residual):
        history.append(float(tf.math.log(residual + 1e-9)))
    lib.solver_set_progress(PROGRESS(progress))


history = []
watch(history)
x = np.zeros(512)
x[0], x[-1] = 1.0, -1.0
gc.collect()
residual = lib.solver_run(x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), x.size, 200)
print(residual, history[-1])
