import ctypes
import os

import tensorflow as tf

lib = ctypes.CDLL(os.path.abspath("build/libbatch.so"))
lib.batch_new.restype = ctypes.c_void_p
lib.batch_new.argtypes = [ctypes.c_int64]
lib.batch_wrap.restype = ctypes.c_void_p
lib.batch_wrap.argtypes = [ctypes.c_void_p, ctypes.c_int64]
lib.batch_free.argtypes = [ctypes.c_void_p]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

for step in range(3):
    data = lib.batch_new(48)
    batch = tf.experimental.dlpack.from_dlpack(new_capsule(lib.batch_wrap(data, 48), b"dltensor", None))
    print(step, float(tf.reduce_sum(batch)), flush=True)
    del batch
    lib.batch_free(data)
