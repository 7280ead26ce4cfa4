"""Train an autoencoder and archive checksums of its activations in the background."""
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, "build")
import archiver


class ArchiveActivations(tf.keras.callbacks.Callback):
    def __init__(self, encoder, sample):
        super().__init__()
        self.encoder = encoder
        self.sample = sample

    def on_epoch_end(self, epoch, logs=None):
        for start in range(0, len(self.sample), 2048):
            codes = self.encoder(self.sample[start:start + 2048]).numpy()
            archiver.submit(codes)
        print("epoch", epoch, "loss %.4f" % logs["loss"], flush=True)


def build(width, code):
    inputs = tf.keras.Input((width,))
    codes = tf.keras.layers.Dense(code, activation="relu", name="codes")(inputs)
    outputs = tf.keras.layers.Dense(width)(codes)
    return tf.keras.Model(inputs, outputs), tf.keras.Model(inputs, codes)


def main():
    data = np.random.default_rng(0).normal(size=(8192, 32)).astype(np.float32)
    autoencoder, encoder = build(32, 2048)
    autoencoder.compile("sgd", "mse")
    autoencoder.fit(data, data, batch_size=1024, epochs=2, verbose=0, callbacks=[ArchiveActivations(encoder, data)])
    print("archive checksum %016x" % archiver.finish())


if __name__ == "__main__":
    main()
