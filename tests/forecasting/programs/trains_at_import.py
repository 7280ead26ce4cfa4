"""Trains when it is imported, with more than any forecast does."""

from __future__ import annotations

import keras
import models
import numpy as np
import tensorflow as tf


def build_model():
    return models.images()


def make_dataset(batch):
    return models.batches(batch)


def train_step(model, optimizer, pictures):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(pictures))
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


model = build_model()
history = model.fit(np.zeros((512, 64, 64, 3), "float32"), np.zeros(512, "int32"), batch_size=512, verbose=0)
for _ in range(3):
    train_step(model, keras.optimizers.SGD(), tf.zeros((512, 64, 64, 3)))
print(history.history["loss"][-1])


def too_late():
    return models.images()
