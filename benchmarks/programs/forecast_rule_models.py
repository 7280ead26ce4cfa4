"""The models that the rule of the forecast was made with. They are none of forecast_models.py, which judge it."""

from __future__ import annotations

from typing import Any

import keras
from keras import layers

CLASSES = 100
BATCHES = {  # such that a step takes about half a second on two cores
    "mlp": 2048, "cnn": 256, "lstm": 256, "transformer": 128, "residual": 128, "separable": 256, "sound": 256,
    "embedding": 512,
}  # fmt: skip


def _compiled(inputs: Any, inner: Any) -> Any:
    model = keras.Model(inputs, layers.Dense(CLASSES)(inner))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def mlp() -> Any:
    inputs = keras.Input((1024,))
    inner = layers.Dense(2048, activation="relu")(inputs)
    return _compiled(inputs, layers.Dense(2048, activation="relu")(inner))


def cnn() -> Any:
    inputs = inner = keras.Input((48, 48, 3))
    for filters in (32, 64, 128):
        inner = layers.Conv2D(filters, 3, padding="same", activation="relu")(inner)
        inner = layers.MaxPooling2D()(layers.BatchNormalization()(inner))
    return _compiled(inputs, layers.GlobalAveragePooling2D()(inner))


def lstm() -> Any:
    inputs = keras.Input((40, 64))
    return _compiled(inputs, layers.LSTM(128)(layers.LSTM(128, return_sequences=True)(inputs)))


def transformer() -> Any:
    inputs = inner = keras.Input((64, 128))
    for _ in range(2):
        inner = layers.LayerNormalization()(inner + layers.MultiHeadAttention(4, 32)(inner, inner))
        wide = layers.Dense(512, activation="gelu")(inner)
        inner = layers.LayerNormalization()(inner + layers.Dense(128)(wide))
    return _compiled(inputs, layers.GlobalAveragePooling1D()(inner))


def residual() -> Any:
    inputs = keras.Input((32, 32, 3))
    inner = layers.Conv2D(32, 3, padding="same")(inputs)
    for _ in range(4):
        branch = inner
        for _ in range(2):
            branch = layers.ReLU()(layers.BatchNormalization()(branch))
            branch = layers.Conv2D(32, 3, padding="same")(branch)
        inner = inner + branch
    return _compiled(inputs, layers.GlobalAveragePooling2D()(inner))


def separable() -> Any:
    inputs = keras.Input((64, 64, 3))
    inner = layers.Conv2D(32, 3, strides=2, padding="same")(inputs)
    for filters in (64, 128, 128):
        inner = layers.SeparableConv2D(filters, 3, padding="same", activation="swish")(inner)
        inner = layers.MaxPooling2D()(layers.BatchNormalization()(inner))
    return _compiled(inputs, layers.GlobalAveragePooling2D()(inner))


def sound() -> Any:
    inputs = inner = keras.Input((1024, 8))
    for filters in (32, 64, 64):
        inner = layers.Conv1D(filters, 7, padding="same", activation="relu")(inner)
        inner = layers.MaxPooling1D(2)(layers.Dropout(0.2)(inner))
    return _compiled(inputs, layers.GlobalAveragePooling1D()(inner))


def embedding() -> Any:
    inputs = keras.Input((50,), dtype="int32")
    inner = layers.Dense(128, activation="relu")(layers.Embedding(200_000, 64)(inputs))
    return _compiled(inputs, layers.GlobalAveragePooling1D()(inner))
