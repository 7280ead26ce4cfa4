import tensorflow as tf


class ConvBlock(tf.keras.layers.Layer):
    def __init__(self, filters, **kw):
        super().__init__(**kw)
        self.conv = tf.keras.layers.Conv2D(filters, 3, padding="same", activation="relu")

    def build(self, input_shape):
        self.conv.build(input_shape)

    def call(self, x):
        x = self.conv(x)
        return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")


def build_encoder(depth, width=8):
    inp = tf.keras.Input(shape=(None, None, 3))
    x = inp
    for i in range(depth):
        x = ConvBlock(width * (i + 1), name=f"block{i}")(x)
    x = tf.keras.layers.GlobalMaxPooling2D()(x)
    out = tf.keras.layers.Dense(4, activation="softmax")(x)
    return tf.keras.Model(inp, out)
