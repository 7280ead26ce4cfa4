"""One crashing call written as programs: the same defect in the surroundings in which people meet it."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

WORKER_EXIT = 3  # how a program ends whose worker process died
BLAMED = "  # <- blamed"  # cut off before the program is written: these lines are right answers
LARGER = 4
_SHAPE = re.compile(r"(tf\.(?:zeros|ones|fill)\(\[)(\d+)(, ?\d)")

EAGER = """\
import tensorflow as tf


def compute():
    {setup}
    return {call}{blamed}


print(compute())
"""
FUNCTION = """\
import tensorflow as tf


@tf.function
def step():
    {setup}
    return {call}{blamed}


print(step()){blamed}
"""
DATASET = """\
import tensorflow as tf


def prepare(index):
    {setup}
    result = {call}{blamed}
    return index, result


dataset = tf.data.Dataset.range(4).map(prepare, num_parallel_calls=2).prefetch(1)
for element in dataset:{blamed}
    print(element)
"""
KERAS = """\
import numpy as np
import tensorflow as tf


class Features(tf.keras.layers.Layer):
    def call(self, inputs):
        {setup}
        result = {call}{blamed}
        return tf.nest.flatten(result)[0]


model = tf.keras.Sequential([Features()])
print(model.predict(np.zeros([4, 3], "float32"), verbose=0)){blamed}
"""
THREAD = """\
import threading

import tensorflow as tf


def work():
    {setup}
    print({call}){blamed}


worker = threading.Thread(target=work, name="features")
worker.start()
worker.join()
"""
PROCESS = """\
import multiprocessing
import sys

import tensorflow as tf


def work():
    {setup}
    print({call}){blamed}


if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join()
    sys.exit({worker_exit} if worker.exitcode else 0)
"""
TRAINING = """\
import tensorflow as tf

weights = tf.Variable(tf.ones([64, 1]))
optimizer = tf.keras.optimizers.SGD(0.01)


def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - y) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
    return loss


def evaluate():
    {setup}
    return {call}{blamed}


for epoch in range(3):
    print(epoch, float(train_step(tf.random.normal([32, 64]), tf.zeros([32, 1]))), flush=True)
print(evaluate())
"""
HELPER = """\
import tensorflow as tf


def apply(op, **arguments):
    return op(**arguments){blamed}


def features():
    return apply(tf.raw_ops.{op}, {arguments})


print(features())
"""
SIGNATURE = """\
import tensorflow as tf

values = {{{tensors}}}
signature = {{name: tf.TensorSpec(None, value.dtype) for name, value in values.items()}}


@tf.function(input_signature=[signature])
def step(tensors):
    return tf.raw_ops.{op}({attributes}**tensors){blamed}


print(step(values)){blamed}
"""
GENERATOR = """\
import tensorflow as tf

values = {{{tensors}}}
signature = {{name: tf.TensorSpec(None, value.dtype) for name, value in values.items()}}


def examples():
    yield values


def prepare(tensors):
    return tf.raw_ops.{op}({attributes}**tensors){blamed}


dataset = tf.data.Dataset.from_generator(examples, output_signature=signature)
for element in dataset.map(prepare):{blamed}
    print(element)
"""
SURROUNDINGS = {
    "eager": EAGER,
    "function": FUNCTION,
    "dataset": DATASET,
    "keras": KERAS,
    "thread": THREAD,
    "process": PROCESS,
    "training": TRAINING,
    "helper": HELPER,
    "larger": EAGER,
    "signature": SIGNATURE,  # shapes that nobody knows while the graph is built
    "generator": GENERATOR,
}
OF_RAW_OPS = ("helper", "signature", "generator")


class Program(NamedTuple):
    surrounding: str
    text: str
    lines: tuple[int, ...]  # right answers to "which line?"

    @property
    def worker(self) -> bool:
        return self.surrounding == "process"


def programs(code: str) -> Iterator[Program]:
    """All surroundings that a call can be put into; whether it still dies there must be tried."""
    *setup, call = code.split("; ")
    parts = {} if setup else raw_parts(call)
    for name, template in SURROUNDINGS.items():
        if (name in OF_RAW_OPS and not parts) or (name == "larger" and larger(call) == call):
            continue
        fields = {"setup": "; ".join(setup), "call": larger(call) if name == "larger" else call, **parts}
        yield written(name, template.format(**fields, blamed=BLAMED, worker_exit=WORKER_EXIT))


def raw_parts(call: str) -> dict[str, str]:
    """The op, its arguments, and which of them are tensors; nothing where it is no call of tf.raw_ops."""
    expression = ast.parse(call, mode="eval").body
    if not isinstance(expression, ast.Call) or not ast.unparse(expression.func).startswith("tf.raw_ops."):
        return {}
    named = {word.arg: ast.get_source_segment(call, word.value) or "" for word in expression.keywords if word.arg}
    tensors = [f'"{name}": {value}' for name, value in named.items() if value.startswith("tf.") and "(" in value]
    attributes = [f"{name}={value}, " for name, value in named.items() if f'"{name}": {value}' not in tensors]
    return {
        "op": ast.unparse(expression.func).removeprefix("tf.raw_ops."),
        "arguments": ", ".join(f"{name}={value}" for name, value in named.items()),
        "tensors": ", ".join(tensors),
        "attributes": "".join(attributes),
    }


def written(name: str, marked: str) -> Program:
    kept = [line for line in marked.splitlines() if not line or line.strip()]  # without an empty {setup}
    lines = tuple(number for number, line in enumerate(kept, 1) if line.endswith(BLAMED))
    return Program(name, "\n".join(line.removesuffix(BLAMED) for line in kept) + "\n", lines)


def larger(call: str) -> str:
    """With more rows in every tensor of more than one dimension."""
    return _SHAPE.sub(lambda match: f"{match[1]}{int(match[2]) * LARGER}{match[3]}", call)


def part(op: str) -> str:
    """Which part the defects of an op belong to. All versions of an op go together, whatever is known of it."""
    plain = re.sub(r"V\d+$", "", op).lower()
    return "heldout" if hashlib.sha256(plain.encode()).digest()[0] % 2 else "train"


def chosen(op: str, found: list[str], count: int) -> list[str]:
    """Some of the surroundings, others for every op."""
    return sorted(found, key=lambda name: hashlib.sha256(f"{op} {name}".encode()).digest())[:count]
