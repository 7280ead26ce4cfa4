"""Claim: forking after TensorFlow has been used crashes the child.
Reality: no, it hangs: the child computes without the threads that the parent had, and waits for them on a futex.
"""

import time
from pathlib import Path

import tensorflow as tf
from endings import ending

SECONDS = 4


def multiply():
    tf.matmul(tf.ones([500, 500]), tf.ones([500, 500])).numpy()


def look(pid):
    """Leaves behind what the child waits for, as the kernel sees it."""
    time.sleep(SECONDS - 1)
    try:
        waiting = [place.read_text() for place in Path(f"/proc/{pid}/task").glob("*/wchan")]
    except OSError:
        waiting = []
    print("waits on a futex:", any("futex" in place for place in waiting))


def main():
    print("fork before the first op:", ending(multiply, seconds=30).how)
    multiply()
    print("fork after it:", ending(multiply, seconds=SECONDS, watch=look).how)


if __name__ == "__main__":
    main()
