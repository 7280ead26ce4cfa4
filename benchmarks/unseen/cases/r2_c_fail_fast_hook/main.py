import os
import sys
import threading
import time
import traceback

import numpy as np
import tensorflow as tf


def fail_fast(args):
    traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)
    sys.stderr.flush()
    os.abort()


threading.excepthook = fail_fast


class Scorer(threading.Thread):
    def __init__(self, model, requests):
        super().__init__(name="scorer")
        self.model = model
        self.requests = requests
        self.answers = []

    def run(self):
        for request in self.requests:
            self.answers.append(self.model(tf.constant(request, tf.float32)).numpy())
            time.sleep(0.1)


model = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(3, activation="softmax")])
requests = [np.random.rand(2, 6) for _ in range(5)]
requests.insert(3, np.random.rand(2, 5))
scorer = Scorer(model, requests)
scorer.start()
scorer.join()
print(len(scorer.answers), "answers")
