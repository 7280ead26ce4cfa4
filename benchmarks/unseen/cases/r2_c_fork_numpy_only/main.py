import os
import warnings

import numpy as np
import tensorflow as tf

warnings.simplefilter("always")


def archive_in_child(folder, arrays):
    """Writes copies of the weights without delaying the training loop."""
    pid = os.fork()
    if pid == 0:
        try:
            np.savez(os.path.join(folder, "weights.npz"), *arrays)
            os._exit(0)
        except BaseException:
            os._exit(7)
    return pid


class BackgroundArchive(tf.keras.callbacks.Callback):
    def __init__(self, folder):
        super().__init__()
        self.folder, self.children = folder, []

    def on_epoch_end(self, epoch, logs=None):
        arrays = [np.array(w) for w in self.model.get_weights()]
        self.children.append(archive_in_child(self.folder, arrays))

    def on_train_end(self, logs=None):
        codes = [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in self.children]
        print("fork after threads: children ended with", codes)


def main():
    import tempfile

    x = np.random.rand(300, 5).astype("float32")
    model = tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with tempfile.TemporaryDirectory() as folder:
        model.fit(x, x[:, :1], epochs=3, verbose=2, callbacks=[BackgroundArchive(folder)])
        print(np.load(os.path.join(folder, "weights.npz")).files)


main()
