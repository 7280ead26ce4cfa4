"""Serve a model from several threads; bad requests are answered with an error text."""
import ctypes
import queue
import threading

import numpy as np
import tensorflow as tf


class Server:
    def __init__(self, workers):
        self.model = tf.keras.Sequential([tf.keras.layers.Input((6,)), tf.keras.layers.Dense(3)])
        self.requests, self.answers = queue.Queue(), {}
        self.threads = [threading.Thread(target=self._work) for _ in range(workers)]

    @tf.function(reduce_retracing=True)
    def _predict(self, rows):
        return tf.argmax(self.model(rows), axis=1)

    def _work(self):
        while True:
            item = self.requests.get()
            if item is None:
                return
            number, payload = item
            try:
                rows = tf.reshape(tf.io.decode_raw(payload, tf.float32), [-1, 6])
                self.answers[number] = self._predict(rows).numpy().tolist()
            except tf.errors.InvalidArgumentError as error:
                self.answers[number] = "error: " + error.message.splitlines()[0][:60]

    def run(self, payloads):
        for item in enumerate(payloads):
            self.requests.put(item)
        for thread in self.threads:
            self.requests.put(None)
            thread.start()
        for thread in self.threads:
            thread.join()
        return self.answers


def payloads(count):
    rng = np.random.default_rng(0)
    for number in range(count):
        raw = rng.normal(size=(2, 6)).astype(np.float32)
        owned = ctypes.create_string_buffer(raw.tobytes(), raw.nbytes)
        yield bytes(owned)[:-4] if number % 5 == 4 else bytes(owned)


def main():
    answers = Server(workers=3).run(list(payloads(20)))
    for number in sorted(answers):
        print(number, answers[number])


if __name__ == "__main__":
    main()
