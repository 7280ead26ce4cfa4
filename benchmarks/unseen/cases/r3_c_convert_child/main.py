import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

import framing


def convert(source, target):
    subprocess.run([sys.executable, framing.__file__, source, target], check=True)


def main():
    folder = tempfile.mkdtemp()
    wave = np.sin(np.arange(1_000_000) * 0.01).astype("float32")
    np.save(os.path.join(folder, "wave.npy"), wave)
    convert(os.path.join(folder, "wave.npy"), os.path.join(folder, "energy.npy"))
    energy = tf.constant(np.load(os.path.join(folder, "energy.npy")))
    print("loudest frame", int(tf.argmax(energy)))


if __name__ == "__main__":
    main()
