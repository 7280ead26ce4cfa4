import ctypes

import tensorflow as tf

drop_reference = ctypes.pythonapi.Py_DecRef
drop_reference.argtypes = [ctypes.py_object]

cached = {}
hits = tf.Variable(0)
for step in range(400000):
    key = (step * 7919) % 50021
    value = cached.get(key)
    drop_reference(value)  # the cache keeps its own reference
    if value is not None:
        hits.assign_add(1)
    elif step % 1000 == 0:
        cached[key] = tf.fill([16], float(step))
print(len(cached), int(hits))
