"""Computes large ops on several threads at once until it is stopped."""

import sys
import threading

import tensorflow as tf

matrix = tf.random.normal([1500, 1500])


def multiply() -> None:
    while True:
        tf.linalg.matmul(matrix, matrix)


for _ in range(int(sys.argv[1])):
    threading.Thread(target=multiply, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
