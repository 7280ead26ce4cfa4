import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf


class Encoder(tf.Module):
    def __init__(self):
        self.kernel = tf.Variable(tf.random.normal((256, 128)), name="kernel")
        self.bias = tf.Variable(tf.zeros((128,)), name="bias")

    @tf.function
    def __call__(self, x):
        return tf.nn.relu(tf.matmul(x, self.kernel) + self.bias)


def mirror(source, target, block=65536):
    """Copies a checkpoint to the serving host, block by block."""
    for name in os.listdir(source):
        with open(os.path.join(source, name), "rb") as src, open(os.path.join(target, name), "wb") as dst:
            dst.write(src.read(block))


def main():
    train_dir, serve_dir = tempfile.mkdtemp(), tempfile.mkdtemp()
    trained = Encoder()
    tf.train.Checkpoint(net=trained).save(os.path.join(train_dir, "enc"))
    mirror(train_dir, serve_dir)
    serving = Encoder()
    path = os.path.join(serve_dir, "enc-1")
    tf.train.Checkpoint(net=serving).restore(path).assert_existing_objects_matched()
    print(serving(np.ones((2, 256), np.float32)).shape)
    shutil.rmtree(train_dir)


main()
