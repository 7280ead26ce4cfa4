import tensorflow as tf


class NoiseBank(tf.Module):
    def __init__(self, minutes, rate=44100):
        super().__init__()
        self.samples = minutes * 60 * rate

    @tf.function(jit_compile=True)
    def draw(self, seed, voices):
        noise = tf.random.stateless_uniform([voices, self.samples], seed, minval=-1.0)
        return noise[:, :10] + tf.reduce_mean(noise, axis=1, keepdims=True)

    def preview(self, seed):
        return self.draw(tf.constant([seed, 0]), 4096)


def main():
    for minutes in (3,):
        bank = NoiseBank(minutes)
        print(minutes, "min:", bank.preview(7).shape)


main()
