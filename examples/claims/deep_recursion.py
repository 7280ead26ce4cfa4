"""Claim: deep recursion is a segmentation fault.
Reality: only with a raised recursion limit, or in a thread with a small stack (then faulthandler prints nothing).
"""

import faulthandler
import sys
import threading

import tensorflow as tf
from endings import ending


class Chain:
    def __init__(self, inner):
        self.inner = inner

    def __repr__(self):
        return f"Chain({self.inner!r})"


def long_chain():
    chain = None
    for _ in range(60_000):
        chain = Chain(chain)
    repr(chain)


def usual_limit():
    long_chain()


def raised_limit():
    faulthandler.enable()
    sys.setrecursionlimit(10**6)
    long_chain()


def small_stack():
    faulthandler.enable()
    threading.stack_size(96 * 1024)

    def work():
        dataset = tf.data.Dataset.range(10)
        for _ in range(200):
            dataset = dataset.map(lambda x: x + 1)
        list(dataset)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def main():
    for job in (usual_limit, raised_limit, small_stack):
        end = ending(job)
        print(f"{job.__name__}: {end.how}; faulthandler spoke: {'Fatal Python error' in end.text}")


if __name__ == "__main__":
    main()
