"""Which models is the forecast of memory examined on? Unlike each other in layers, inputs, losses and optimizers."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf
from keras import layers, ops


class Model(NamedTuple):
    build: str  # the name of a function of this file
    data_spec: str | None  # examples, where the model's inputs, outputs and loss do not tell
    batches: tuple[int, int, int]


def _compiled(
    inputs: Any, outputs: Any, optimizer: Any = "adam", loss: Any = "sparse_categorical_crossentropy", **more: Any
) -> keras.Model:
    model = keras.Model(inputs, outputs)
    model.compile(optimizer, loss, **more)
    return model


def _classifier(inputs: Any, features: Any, classes: int, optimizer: Any = "adam", **more: Any) -> keras.Model:
    return _compiled(inputs, layers.Dense(classes, activation="softmax", dtype="float32")(features), optimizer, **more)


# --------------------------------------------------------------------------------------------- dense


def build_mlp_wide() -> keras.Model:
    inputs = keras.Input((128,))
    hidden = layers.Dropout(0.3)(layers.Dense(16384, activation="relu")(inputs))
    return _classifier(inputs, hidden, 10)


def build_mlp_deep() -> keras.Model:
    inputs = x = keras.Input((64,))
    for _ in range(16):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Dense(256, use_bias=False)(x)))
    return _compiled(inputs, layers.Dense(1)(x), "sgd", "mse")


def build_heavy_weights() -> keras.Model:
    """Its weights outweigh everything that a batch adds."""
    inputs = keras.Input((2000,))
    x = layers.Dense(8000, activation="tanh")(inputs)
    x = layers.Dense(4000, activation="tanh")(x)
    return _classifier(inputs, x, 100, keras.optimizers.SGD(0.01, momentum=0.9))


def build_accumulating() -> keras.Model:
    inputs = x = keras.Input((512,))
    for units in (3000, 3000, 2000):
        x = layers.Dense(units, activation="gelu")(x)
    return _compiled(inputs, layers.Dense(50)(x), keras.optimizers.Adam(gradient_accumulation_steps=4), "mae")


def build_jit_mlp() -> keras.Model:
    inputs = x = keras.Input((256,))
    for _ in range(6):
        x = layers.Dropout(0.1)(layers.LayerNormalization()(layers.Dense(768, activation="swish")(x)))
    return _classifier(inputs, x, 20, jit_compile=True)


def build_subclassed() -> keras.Model:
    """Nothing of its inputs is declared."""

    class Residual(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(1024)
            self.blocks = [layers.Dense(1024, activation="elu") for _ in range(5)]
            self.last = layers.Dense(7)

        def call(self, x: Any) -> Any:
            x = self.first(x)
            for block in self.blocks:
                x = x + block(x)
            return self.last(x)

    model = Residual()
    model.compile("nadam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


# ------------------------------------------------------------------------------------------- tabular


def build_recommender() -> keras.Model:
    user, item = keras.Input((), dtype="int32", name="user"), keras.Input((20,), dtype="int32", name="items")
    users = layers.Embedding(1_000_000, 64)(user)
    items = layers.Embedding(300_000, 64)(item)
    seen = ops.mean(items, axis=1)
    x = layers.Dense(256, activation="relu")(layers.Concatenate()([users, seen, users * seen]))
    return _compiled([user, item], layers.Dense(1, activation="sigmoid")(x), "adam", "binary_crossentropy")


def build_wide_and_deep() -> keras.Model:
    crossed = keras.Input((200,), dtype="int32", name="crossed")
    numbers = keras.Input((100,), name="numbers")
    wide = ops.sum(layers.Embedding(500_000, 4)(crossed), axis=1)
    deep = numbers
    for units in (1024, 512, 256):
        deep = layers.Dense(units, activation="relu")(deep)
    outputs = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([wide, deep]))
    return _compiled([crossed, numbers], outputs, "ftrl", "binary_crossentropy")


# -------------------------------------------------------------------------------------------- images


def build_cnn_small() -> keras.Model:
    inputs = x = keras.Input((64, 64, 3))
    for filters in (32, 64, 64):
        x = layers.MaxPooling2D()(layers.Conv2D(filters, 3, padding="same", activation="relu")(x))
    return _classifier(inputs, layers.Dense(128, activation="relu")(layers.Flatten()(x)), 10)


def build_vgg() -> keras.Model:
    inputs = x = keras.Input((64, 64, 3))
    for filters in (64, 128, 256):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.5)(layers.Dense(1024, activation="relu")(layers.Flatten()(x)))
    return _classifier(inputs, x, 100, keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True))


def build_resnet50() -> keras.Model:
    model = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=100)
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def build_mobilenet_v2() -> keras.Model:
    model = keras.applications.MobileNetV2(weights=None, input_shape=(96, 96, 3), classes=50)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "categorical_crossentropy", metrics=["accuracy"])
    return model


def build_efficientnet_b0() -> keras.Model:
    model = keras.applications.EfficientNetB0(weights=None, input_shape=(96, 96, 3), classes=50)
    model.compile("rmsprop", "sparse_categorical_crossentropy")
    return model


def build_densenet121() -> keras.Model:
    model = keras.applications.DenseNet121(weights=None, input_shape=(64, 64, 3), classes=20)
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def build_frozen_backbone() -> keras.Model:
    backbone = keras.applications.MobileNetV2(weights=None, input_shape=(128, 128, 3), include_top=False)
    backbone.trainable = False
    inputs = keras.Input((128, 128, 3))
    features = layers.GlobalAveragePooling2D()(backbone(inputs, training=False))
    return _classifier(inputs, layers.Dense(512, activation="relu")(features), 30)


def build_convnext_like() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(64, 4, strides=4)(inputs)
    for _ in range(4):
        y = layers.LayerNormalization()(layers.DepthwiseConv2D(7, padding="same")(x))
        x = x + layers.Dense(64)(layers.Dense(256, activation="gelu")(y))
    return _classifier(inputs, layers.GlobalAveragePooling2D()(x), 40, keras.optimizers.AdamW(1e-3))


def build_jit_cnn() -> keras.Model:
    inputs = x = keras.Input((48, 48, 3))
    for filters in (32, 48, 64):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.AveragePooling2D(2)(layers.ReLU()(layers.BatchNormalization()(x)))
    return _classifier(inputs, layers.GlobalAveragePooling2D()(x), 10, jit_compile=True)


def build_mixed_precision_cnn() -> keras.Model:
    policy = {"dtype": "mixed_bfloat16"}
    inputs = x = keras.Input((64, 64, 3))
    for filters in (16, 24):
        x = layers.Conv2D(filters, 3, padding="same", **policy)(x)
        x = layers.MaxPooling2D(**policy)(layers.ReLU(**policy)(layers.BatchNormalization(**policy)(x)))
    return _classifier(inputs, layers.GlobalAveragePooling2D(**policy)(x), 10)


def build_unet() -> keras.Model:
    inputs = x = keras.Input((128, 128, 3))
    skipped = []
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        skipped.append(x := layers.Conv2D(filters, 3, padding="same", activation="relu")(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(128, 3, padding="same", activation="relu")(x)
    for filters, skip in zip((64, 32, 16), reversed(skipped), strict=True):
        x = layers.Concatenate()([layers.Conv2DTranspose(filters, 2, strides=2)(x), skip])
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return _compiled(inputs, layers.Conv2D(5, 1, activation="softmax")(x))


def build_autoencoder() -> keras.Model:
    inputs = x = keras.Input((96, 96, 3))
    for filters in (32, 64, 96):
        x = layers.LeakyReLU()(layers.Conv2D(filters, 3, strides=2, padding="same")(x))
    for filters in (64, 32, 16):
        x = layers.LeakyReLU()(layers.Conv2D(filters, 3, padding="same")(layers.UpSampling2D()(x)))
    return _compiled(inputs, layers.Conv2D(3, 3, padding="same", activation="sigmoid")(x), "adamax", "mse")


def build_cnn_3d() -> keras.Model:
    inputs = x = keras.Input((16, 48, 48, 1))
    for filters in (16, 32, 32):
        x = layers.MaxPooling3D((1, 2, 2))(layers.Conv3D(filters, 3, padding="same", activation="relu")(x))
    return _classifier(inputs, layers.GlobalMaxPooling3D()(x), 12, "rmsprop")


def build_multi_input() -> keras.Model:
    image, table = keras.Input((64, 64, 3), name="image"), keras.Input((200,), name="table")
    x = layers.SeparableConv2D(64, 3, padding="same", activation="relu")(image)
    x = layers.SeparableConv2D(64, 3, padding="same", activation="relu")(layers.MaxPooling2D()(x))
    x = layers.GlobalAveragePooling2D()(x)
    y = layers.Dense(2048, activation="relu")(layers.Dense(2048, activation="relu")(table))
    return _compiled([image, table], layers.Dense(1)(layers.Concatenate()([x, y])), "adam", "huber")


def build_siamese() -> keras.Model:
    inputs = x = keras.Input((64, 64, 1))
    for filters in (32, 64):
        x = layers.MaxPooling2D()(layers.Conv2D(filters, 5, padding="same", activation="relu")(x))
    shared = keras.Model(inputs, layers.Dense(128)(layers.GlobalAveragePooling2D()(x)))
    left, right = keras.Input((64, 64, 1), name="left"), keras.Input((64, 64, 1), name="right")
    distance = ops.abs(shared(left) - shared(right))
    return _compiled([left, right], layers.Dense(1, activation="sigmoid")(distance), "adagrad", "binary_crossentropy")


def build_multi_output() -> keras.Model:
    inputs = x = keras.Input((80, 80, 3))
    for filters in (24, 48):
        x = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same", activation="relu")(x))
        x = layers.MaxPooling2D()(x)
    flat = layers.GlobalAveragePooling2D()(x)
    outputs = {
        "kind": layers.Dense(15, activation="softmax", name="kind")(flat),
        "age": layers.Dense(1, name="age")(flat),
        "mask": layers.Conv2DTranspose(1, 4, strides=4, activation="sigmoid", name="mask")(x),
    }
    losses = {"kind": "sparse_categorical_crossentropy", "age": "mse", "mask": "binary_crossentropy"}
    return _compiled(inputs, outputs, "adam", losses)


# ----------------------------------------------------------------------------------------- sequences


def build_lstm() -> keras.Model:
    inputs = keras.Input((150, 32))
    return _classifier(inputs, layers.LSTM(128)(inputs), 6)


def build_gru_bidirectional() -> keras.Model:
    inputs = x = keras.Input((100, 40))
    x = layers.Bidirectional(layers.GRU(64, return_sequences=True))(x)
    x = layers.Bidirectional(layers.GRU(64, return_sequences=True))(x)
    return _classifier(inputs, x, 30, "rmsprop")  # a label for each frame


def build_audio_cnn() -> keras.Model:
    inputs = x = keras.Input((16000, 1))
    for filters, stride in ((16, 2), (32, 2), (64, 4), (64, 4)):
        x = layers.Conv1D(filters, 9, strides=stride, padding="same", activation="relu")(x)
        x = layers.BatchNormalization()(x)
    return _classifier(inputs, layers.GlobalMaxPooling1D()(x), 35, "adadelta")


def build_conv_lstm() -> keras.Model:
    inputs = keras.Input((8, 40, 40, 1))
    x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(inputs)
    return _compiled(inputs, layers.Conv3D(1, 3, padding="same", activation="sigmoid")(x), "adam", "mse")


def build_text_cnn() -> keras.Model:
    """Of any length: how long the texts are is up to the data."""
    words = keras.Input((None,), dtype="int32", name="words")
    embedded = layers.Embedding(30_000, 128)(words)
    found = [layers.GlobalMaxPooling1D()(layers.Conv1D(128, width, activation="relu")(embedded)) for width in (3, 4, 5)]
    return _classifier(words, layers.Dropout(0.5)(layers.Concatenate()(found)), 8, "adafactor")


# ---------------------------------------------------------------------------------------- transformers


def _encoded(x: Any, width: int, heads: int, blocks: int, causal: bool = False, **policy: Any) -> Any:
    for _ in range(blocks):
        y = layers.LayerNormalization(**policy)(x)
        attention = layers.MultiHeadAttention(heads, width // heads, dropout=0.1, **policy)
        x = layers.Add(**policy)([x, attention(y, y, use_causal_mask=causal)])
        y = layers.Dense(4 * width, activation="gelu", **policy)(layers.LayerNormalization(**policy)(x))
        x = layers.Add(**policy)([x, layers.Dropout(0.1, **policy)(layers.Dense(width, **policy)(y))])
    return x


class Positions(layers.Layer):
    """Adds a learned vector for each place of the sequence."""

    def build(self, shape: tuple[int, ...]) -> None:
        self.places = self.add_weight(shape=shape[1:], initializer="random_normal", name="places")

    def call(self, x: Any) -> Any:
        return x + ops.cast(self.places, x.dtype)


def _language(length: int, vocabulary: int, width: int) -> tuple[Any, Any]:
    tokens = keras.Input((length,), dtype="int32", name="tokens")
    return tokens, Positions()(layers.Embedding(vocabulary, width)(tokens))


def build_transformer_small() -> keras.Model:
    tokens, x = _language(128, 8000, 128)
    return _classifier(tokens, layers.GlobalAveragePooling1D()(_encoded(x, 128, 4, 3)), 4)


def build_transformer_larger() -> keras.Model:
    tokens, x = _language(192, 20_000, 384)
    return _classifier(tokens, layers.GlobalAveragePooling1D()(_encoded(x, 384, 6, 6)), 4, keras.optimizers.AdamW(1e-4))


def build_language_model() -> keras.Model:
    tokens, x = _language(96, 20_000, 128)
    logits = layers.Dense(20_000)(_encoded(x, 128, 4, 2, causal=True))
    return _compiled(tokens, logits, "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def build_long_attention() -> keras.Model:
    """The matrices of attention outweigh the rest."""
    inputs = keras.Input((768, 32))
    return _compiled(inputs, layers.Dense(1)(_encoded(layers.Dense(64)(inputs), 64, 4, 2)), "adam", "mse")


def build_mixed_precision_transformer() -> keras.Model:
    inputs = keras.Input((96, 64))
    x = _encoded(layers.Dense(96, dtype="mixed_float16")(inputs), 96, 4, 2, dtype="mixed_float16")
    return _classifier(inputs, layers.GlobalAveragePooling1D()(x), 4)


def build_vision_transformer() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    patches = layers.Reshape((64, 160))(layers.Conv2D(160, 8, strides=8)(inputs))
    x = layers.LayerNormalization()(_encoded(Positions()(patches), 160, 5, 5))
    return _classifier(inputs, x[:, 0], 10, keras.optimizers.Lion(1e-4))


def build_mlp_mixer() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.Reshape((256, 128))(layers.Conv2D(128, 4, strides=4)(inputs))
    for _ in range(4):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        x = x + layers.Permute((2, 1))(layers.Dense(256)(layers.Dense(128, activation="gelu")(y)))
        x = x + layers.Dense(128)(layers.Dense(256, activation="gelu")(layers.LayerNormalization()(x)))
    return _classifier(inputs, layers.GlobalAveragePooling1D()(x), 10, keras.optimizers.Lamb(1e-3))


# -------------------------------------------------------------------------------- with code of their own


class Messages(layers.Layer):
    """One round of messages along the edges of each graph."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.message, self.update = layers.Dense(units, activation="relu"), layers.Dense(units, activation="relu")

    def call(self, nodes: Any, edges: Any) -> Any:
        graphs, count = tf.shape(nodes)[0], tf.shape(nodes)[1]
        flat = tf.reshape(nodes, (-1, nodes.shape[-1]))
        ends = tf.reshape(edges + (tf.range(graphs) * count)[:, None, None], (-1, 2))
        sent = self.message(tf.concat([tf.gather(flat, ends[:, 0]), tf.gather(flat, ends[:, 1])], axis=-1))
        received = tf.math.unsorted_segment_sum(sent, ends[:, 1], graphs * count)
        return tf.reshape(self.update(received), (graphs, count, self.update.units))


def build_graph_network() -> keras.Model:
    nodes = keras.Input((60, 32), name="nodes")
    edges = keras.Input((240, 2), dtype="int32", name="edges")
    x = nodes
    for _ in range(3):
        x = Messages(96)(x, edges)
    return _compiled([nodes, edges], layers.Dense(1)(layers.GlobalAveragePooling1D()(x)), "adam", "mse")


class VariationalAutoencoder(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        conv = {"padding": "same", "strides": 2, "activation": "relu"}
        self.encoder = keras.Sequential(
            [layers.Conv2D(32, 3, **conv), layers.Conv2D(64, 3, **conv), layers.Flatten(), layers.Dense(128)]
        )
        self.decoder = keras.Sequential(
            [layers.Dense(16 * 16 * 64), layers.Reshape((16, 16, 64)), layers.Conv2DTranspose(64, 3, **conv),
             layers.Conv2DTranspose(32, 3, **conv), layers.Conv2D(3, 3, padding="same", activation="sigmoid")]
        )  # fmt: skip

    def call(self, x: Any) -> Any:
        mean, spread = ops.split(self.encoder(x), 2, axis=-1)
        self.add_loss(-0.5 * ops.mean(1 + spread - ops.square(mean) - ops.exp(spread)))
        return self.decoder(mean + ops.exp(0.5 * spread) * keras.random.normal(ops.shape(mean)))


def build_variational_autoencoder() -> keras.Model:
    model = VariationalAutoencoder()
    model.compile("adam", "mse")
    return model


class Gan(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        up = {"strides": 2, "padding": "same", "activation": "relu"}
        self.generator = keras.Sequential(
            [keras.Input((100,)), layers.Dense(8 * 8 * 96), layers.Reshape((8, 8, 96)),
             layers.Conv2DTranspose(64, 4, **up), layers.BatchNormalization(), layers.Conv2DTranspose(32, 4, **up),
             layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh")]
        )  # fmt: skip
        self.critic = keras.Sequential(
            [keras.Input((64, 64, 3)), layers.Conv2D(32, 4, strides=2, padding="same"), layers.LeakyReLU(),
             layers.Conv2D(64, 4, strides=2, padding="same"), layers.LeakyReLU(), layers.Dropout(0.3),
             layers.Flatten(), layers.Dense(1)]
        )  # fmt: skip
        self.critic_optimizer = keras.optimizers.Adam(2e-4)

    def call(self, noise: Any) -> Any:
        return self.generator(noise)

    def train_step(self, real: Any) -> dict[str, Any]:
        noise = tf.random.normal((tf.shape(real)[0], 100))
        with tf.GradientTape() as tape:
            scores = self.critic(tf.concat([self.generator(noise, training=True), real], axis=0), training=True)
            fake, true = tf.split(scores, 2)
            critic_loss = tf.reduce_mean(tf.nn.softplus(fake) + tf.nn.softplus(-true))
        weights = self.critic.trainable_variables
        self.critic_optimizer.apply_gradients(zip(tape.gradient(critic_loss, weights), weights, strict=True))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-self.critic(self.generator(noise, training=True), training=True)))
        weights = self.generator.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"generator": loss, "critic": critic_loss}


def build_gan() -> keras.Model:
    model = Gan()
    model.compile(keras.optimizers.Adam(2e-4))
    return model


MODELS = {
    "mlp_wide": Model("build_mlp_wide", None, (1024, 2048, 4096)),
    "mlp_deep": Model("build_mlp_deep", None, (4096, 8192, 16384)),
    "heavy_weights": Model("build_heavy_weights", None, (16, 32, 64)),
    "accumulating": Model("build_accumulating", None, (64, 128, 256)),
    "jit_mlp": Model("build_jit_mlp", None, (512, 1024, 2048)),
    "subclassed": Model("build_subclassed", "x=float32[128] y=int32[]<7", (256, 512, 1024)),
    "recommender": Model("build_recommender", "user=int32[]<1000000 items=int32[20]<300000", (1024, 2048, 4096)),
    "wide_and_deep": Model("build_wide_and_deep", "crossed=int32[200]<500000 numbers=float32[100]", (512, 1024, 2048)),
    "cnn_small": Model("build_cnn_small", None, (32, 64, 128)),
    "vgg": Model("build_vgg", None, (4, 8, 16)),
    "resnet50": Model("build_resnet50", None, (4, 8, 16)),
    "mobilenet_v2": Model("build_mobilenet_v2", None, (8, 16, 32)),
    "efficientnet_b0": Model("build_efficientnet_b0", None, (8, 16, 32)),
    "densenet121": Model("build_densenet121", None, (4, 8, 16)),
    "frozen_backbone": Model("build_frozen_backbone", None, (16, 32, 64)),
    "convnext_like": Model("build_convnext_like", None, (32, 64, 128)),
    "jit_cnn": Model("build_jit_cnn", None, (16, 32, 64)),
    "mixed_precision_cnn": Model("build_mixed_precision_cnn", None, (32, 64, 128)),
    "unet": Model("build_unet", None, (8, 16, 32)),
    "autoencoder": Model("build_autoencoder", None, (8, 16, 32)),
    "cnn_3d": Model("build_cnn_3d", None, (2, 4, 8)),
    "multi_input": Model("build_multi_input", None, (16, 32, 64)),
    "siamese": Model("build_siamese", None, (16, 32, 64)),
    "multi_output": Model("build_multi_output", None, (16, 32, 64)),
    "lstm": Model("build_lstm", None, (256, 512, 1024)),
    "gru_bidirectional": Model("build_gru_bidirectional", None, (32, 64, 128)),
    "audio_cnn": Model("build_audio_cnn", None, (32, 64, 128)),
    "conv_lstm": Model("build_conv_lstm", None, (8, 16, 32)),
    "text_cnn": Model("build_text_cnn", "words=int32[300]<30000 y=int32[]<8", (64, 128, 256)),
    "transformer_small": Model("build_transformer_small", "tokens=int32[128]<8000", (8, 16, 32)),
    "transformer_larger": Model("build_transformer_larger", "tokens=int32[192]<20000", (2, 4, 8)),
    "language_model": Model("build_language_model", "tokens=int32[96]<20000", (8, 16, 32)),
    "long_attention": Model("build_long_attention", None, (4, 8, 16)),
    "mixed_precision_transformer": Model("build_mixed_precision_transformer", None, (32, 64, 128)),
    "vision_transformer": Model("build_vision_transformer", None, (16, 32, 64)),
    "mlp_mixer": Model("build_mlp_mixer", None, (8, 16, 32)),
    "graph_network": Model("build_graph_network", "nodes=float32[60,32] edges=int32[240,2]<60", (128, 256, 512)),
    "variational_autoencoder": Model(
        "build_variational_autoencoder", "x=float32[64,64,3] y=float32[64,64,3]", (32, 64, 128)
    ),
    "gan": Model("build_gan", "x=float32[64,64,3]", (32, 64, 128)),
}
