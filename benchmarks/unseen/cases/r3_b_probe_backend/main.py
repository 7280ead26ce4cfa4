"""Choose the fastest native kernel that works on this machine, then train with plain TensorFlow if none does."""
import ctypes
import signal
import subprocess
import sys

import numpy as np
import tensorflow as tf

CANDIDATES = {
    "fused": "import ctypes; ctypes.CDLL(None).memset(0, 1, 64)",
    "blocked": "import os; os.abort()",
}


def works(code):
    """Tries the kernel in a child, because a bad one takes its process down."""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True)
    if child.returncode < 0:
        print("  probe ended by", signal.Signals(-child.returncode).name)
    return child.returncode == 0


def choose():
    for name, code in CANDIDATES.items():
        print("trying", name, flush=True)
        if works(code):
            return name
    return "tensorflow"


def scaled(samples):
    raw = (ctypes.c_float * samples.size).from_buffer(samples)
    view = np.ctypeslib.as_array(raw).reshape(samples.shape)
    view /= np.abs(view).max()
    return tf.constant(view)


def main():
    backend = choose()
    print("backend:", backend)
    samples = np.random.default_rng(0).normal(size=(512, 16)).astype(np.float32)
    x = scaled(samples)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(16)])
    model.compile("adam", "mse")
    history = model.fit(x, x, epochs=2, verbose=0)
    print("loss", ["%.4f" % v for v in history.history["loss"]])


if __name__ == "__main__":
    main()
