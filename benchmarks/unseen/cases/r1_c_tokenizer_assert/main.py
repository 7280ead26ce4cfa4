import ctypes
import os

import numpy as np
import tensorflow as tf

lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "build", "libtok.so"))
lib.tokenize.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]
MAX_TOKENS = 12


def encode(text):
    ids = np.zeros(MAX_TOKENS, np.int32)
    lib.tokenize(text.numpy(), ids.ctypes.data, MAX_TOKENS)
    return ids


def tf_encode(text):
    ids = tf.py_function(encode, [text], tf.int32)
    ids.set_shape((MAX_TOKENS,))
    return ids


reviews = [
    "great film and a good cast",
    "boring",
    "i have never seen a film that tries so hard to be clever and fails at every single turn",
    "fine for children",
]
ds = tf.data.Dataset.from_tensor_slices(reviews).map(tf_encode, num_parallel_calls=2).batch(2)
embed = tf.keras.layers.Embedding(1024, 8)
for batch in ds:
    print(tf.reduce_mean(embed(batch)).numpy())
