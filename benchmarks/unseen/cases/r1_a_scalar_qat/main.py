import tensorflow as tf


class QuantTemperature(tf.keras.layers.Layer):
    """Divides logits by a learned temperature that is fake-quantised during training."""

    def build(self, input_shape):
        self.temperature = self.add_weight(shape=(), initializer="ones", name="temperature")
        self.low = self.add_weight(shape=(1,), initializer=tf.keras.initializers.Constant(-4.0), name="low")
        self.high = self.add_weight(shape=(1,), initializer=tf.keras.initializers.Constant(4.0), name="high")

    def call(self, logits):
        t = tf.quantization.fake_quant_with_min_max_vars_per_channel(
            tf.convert_to_tensor(self.temperature), self.low, self.high, num_bits=8)
        return logits / t


def build_model():
    return tf.keras.Sequential([
        tf.keras.Input(shape=(6,)),
        tf.keras.layers.Dense(3),
    ])


def main():
    backbone = build_model()
    temper = QuantTemperature()
    x = tf.random.normal([16, 6], seed=2)
    for _ in range(2):
        probs = tf.nn.softmax(temper(backbone(x)))
        print(tf.reduce_mean(tf.reduce_max(probs, axis=-1)).numpy())


main()
