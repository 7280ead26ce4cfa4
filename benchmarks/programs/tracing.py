"""Traces the training step of a large model again and again, with and without remembering its lines; then runs it.

To be run by faultlens. Prints, to standard error, the seconds of each round for each variant, and what a step costs."""

import gc
import json
import os
import random
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import tensorflow as tf
from tensorflow.python.framework import ops

keras = tf.keras
layers = keras.layers
PLAIN, AGAIN, HOOKED = "plain", "plain again", "agent"
HOOK = "_record_op_seen_by_control_dependencies"


def resnet() -> tuple:
    model = keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)
    return model, tf.TensorSpec((2, 64, 64, 3)), tf.TensorSpec((2,), tf.int32)


def transformer() -> tuple:
    tokens = keras.Input((64,), dtype="int32")
    x = layers.Embedding(1000, 64)(tokens)
    for _ in range(12):
        attended = layers.MultiHeadAttention(4, 16)(x, x)
        x = layers.LayerNormalization()(x + attended)
        wide = layers.Dense(256, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(layers.Dense(64)(wide)))
    model = keras.Model(tokens, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling1D()(x)))
    return model, tf.TensorSpec((2, 64), tf.int32), tf.TensorSpec((2,), tf.int32)


model, inputs, labels = {"resnet": resnet, "transformer": transformer}[sys.argv[1]]()
ROUNDS = int(sys.argv[2])
optimizer = keras.optimizers.SGD()
loss_function = keras.losses.SparseCategoricalCrossentropy()
optimizer.build(model.trainable_variables)

hooked = vars(ops.Graph)[HOOK]
original, _, unknown = hooked.__self__  # ours is made in C, of these parts
guard = unknown.__self__._guard
variants = {PLAIN: (original, False), AGAIN: (original, False), HOOKED: (hooked, True)}


def set_variant(name: str) -> None:
    function, guard.working = variants[name]
    setattr(ops.Graph, HOOK, function)


def trace() -> tuple:
    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_function(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    gc.collect()
    start = time.process_time()
    function = step.get_concrete_function(inputs, labels)
    return time.process_time() - start, function


def seconds_each(call, count: int) -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for number in range(count):
            call(number)
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


set_variant(PLAIN)
trace()  # the first one builds more than a graph
times: dict = {name: [] for name in variants}
order = random.Random(0)
for _ in range(ROUNDS):
    for name in order.sample(list(variants), len(variants)):
        set_variant(name)
        seconds, function = trace()
        times[name].append(seconds)
nodes = len(function.graph.get_operations())

# Steps of a function that was traced: nothing of ours is called any more.
set_variant(HOOKED)
small = tf.function(lambda x: tf.nn.relu(x @ x) + 1.0)
x = tf.ones([8, 8])
small(x)
calls = {name: [] for name in variants}
for _ in range(ROUNDS):
    for name in order.sample(list(variants), len(variants)):
        set_variant(name)
        calls[name].append(seconds_each(lambda _: small(x), 300))

# A mark of progress: Keras tells its callbacks that a step begins.
set_variant(HOOKED)
callbacks = keras.callbacks.CallbackList([], model=model, epochs=1, steps=10**6)
callbacks.on_train_begin()
batch_begin = callbacks.on_train_batch_begin
marked = [seconds_each(batch_begin, 20_000) for _ in range(ROUNDS)]
without_mark = batch_begin.__func__.__self__[0]
unmarked = [seconds_each(lambda number: without_mark(callbacks, number), 20_000) for _ in range(ROUNDS)]

print(
    json.dumps({"trace": times, "call": calls, "nodes": nodes, "marked": marked, "unmarked": unmarked}), file=sys.stderr
)
