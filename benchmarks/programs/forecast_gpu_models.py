"""Which models is the forecast for GPUs made with? None of them is among those that it is examined on."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers, ops


def _compiled(inputs: Any, outputs: Any, optimizer: Any = "adam", loss: Any = "mse") -> keras.Model:
    model = keras.Model(inputs, outputs)
    model.compile(optimizer, loss)
    return model


def build_dense() -> keras.Model:
    inputs = x = keras.Input((300,))
    for _ in range(5):
        x = layers.Dropout(0.2)(layers.Dense(1536, activation="relu")(x))
    return _compiled(inputs, layers.Dense(20, activation="softmax")(x), "adam", "sparse_categorical_crossentropy")


def build_large_weights() -> keras.Model:
    inputs = x = keras.Input((1000,))
    for _ in range(4):
        x = layers.Dense(6000, activation="tanh")(x)
    return _compiled(inputs, layers.Dense(10)(x), "adam")


def build_conv_plain() -> keras.Model:
    inputs = x = keras.Input((80, 80, 3))
    for filters in (32, 48, 96):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(layers.Conv2D(filters, 3, padding="same", activation="relu")(x))
    return _compiled(inputs, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)), keras.optimizers.SGD(0.01))


def build_conv_residual() -> keras.Model:
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(64, 3, padding="same")(inputs)
    for _ in range(6):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(64, 3, padding="same", use_bias=False)(x)))
        x = layers.Add()([x, layers.BatchNormalization()(layers.Conv2D(64, 3, padding="same", use_bias=False)(y))])
    return _compiled(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def build_conv_depthwise() -> keras.Model:
    inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same")(inputs)
    for filters in (64, 96, 128):
        x = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x)))
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 1)(x)))
    return _compiled(inputs, layers.Dense(8)(layers.GlobalAveragePooling2D()(x)), "rmsprop")


def build_conv_up() -> keras.Model:
    inputs = x = keras.Input((64, 64, 1))
    for filters in (24, 48):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
    for filters in (48, 24):
        x = layers.Conv2DTranspose(filters, 3, strides=2, padding="same", activation="relu")(x)
    return _compiled(inputs, layers.Conv2D(1, 1)(x), keras.optimizers.SGD(0.01, momentum=0.9))


def build_conv_signal() -> keras.Model:
    inputs = x = keras.Input((4096, 2))
    for filters in (32, 48, 64):
        x = layers.MaxPooling1D(4)(layers.Conv1D(filters, 7, padding="same", activation="swish")(x))
    return _compiled(inputs, layers.Dense(3)(layers.Flatten()(x)), "adam")


def build_recurrent() -> keras.Model:
    inputs = keras.Input((80, 24))
    x = layers.GRU(96)(layers.LSTM(96, return_sequences=True)(inputs))
    return _compiled(inputs, layers.Dense(4)(x), "adam")


def build_attention() -> keras.Model:
    tokens = keras.Input((160,), dtype="int32", name="tokens")
    x = layers.Embedding(5000, 192)(tokens)
    for _ in range(3):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(6, 32)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(192)(layers.Dense(768, activation="gelu")(x)))
    return _compiled(tokens, layers.Dense(2)(ops.mean(x, axis=1)), keras.optimizers.AdamW(1e-4))


def build_embeddings() -> keras.Model:
    items = keras.Input((30,), dtype="int32", name="items")
    x = layers.Flatten()(layers.Embedding(400_000, 32)(items))
    return _compiled(items, layers.Dense(1)(layers.Dense(512, activation="relu")(x)), "adam")


# Batch sizes, and what of the examples the models do not tell.
MODELS: dict[str, tuple[tuple[int, int, int], str | None]] = {
    "dense": ((1024, 4096, 16384), None),
    "large_weights": ((32, 256, 1024), None),
    "conv_plain": ((16, 64, 192), None),
    "conv_residual": ((32, 96, 256), None),
    "conv_depthwise": ((32, 128, 384), None),
    "conv_up": ((64, 256, 768), None),
    "conv_signal": ((64, 192, 512), None),
    "recurrent": ((128, 512, 1536), None),
    "attention": ((16, 48, 128), "tokens=int32[160]<5000"),
    "embeddings": ((1024, 8192, 32768), "items=int32[30]<400000"),
}
