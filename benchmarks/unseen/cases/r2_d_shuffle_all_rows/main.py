"""Fine-tune a text classifier; the shuffle buffer should hold the whole corpus."""
import numpy as np
import tensorflow as tf

# "larger than any corpus we have", so that the shuffle is always a full one
SHUFFLE_BUFFER = 10 ** 15
VOCAB = 2000


def synth_corpus(n_docs=600, length=40, seed=3):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, VOCAB, size=(n_docs, length)).astype("int32")
    labels = (tokens.sum(axis=1) % 2).astype("float32")
    return tokens, labels


def make_pipeline(tokens, labels, training):
    ds = tf.data.Dataset.from_tensor_slices((tokens, labels))
    if training:
        ds = ds.shuffle(SHUFFLE_BUFFER, reshuffle_each_iteration=True)
    return ds.batch(32).prefetch(tf.data.AUTOTUNE)


class Trainer:
    def __init__(self):
        self.model = tf.keras.Sequential([
            tf.keras.layers.Embedding(VOCAB, 16),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(1),
        ])
        self.opt = tf.keras.optimizers.SGD(0.1)
        self.loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)

    def step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(y[:, None], self.model(x, training=True))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    def evaluate(self, ds):
        return float(np.mean([self.loss(y[:, None], self.model(x)) for x, y in ds]))

    def run_epoch(self, ds):
        return float(np.mean([self.step(x, y) for x, y in ds]))


if __name__ == "__main__":
    tokens, labels = synth_corpus()
    trainer = Trainer()
    print("loss before", trainer.evaluate(make_pipeline(tokens[:100], labels[:100], False)))
    print("epoch 1", trainer.run_epoch(make_pipeline(tokens[100:], labels[100:], True)))
