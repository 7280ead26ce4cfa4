"""Claim: torch and TensorFlow in one process crash, depending on which is imported first.
Reality: no. Both orders work.
"""

import sys
from importlib.util import find_spec

from endings import cannot_show, ending_of

WORK = "import torch, tensorflow as tf; torch.ones(99, 99) @ torch.ones(99, 99); tf.ones([99, 99]) @ tf.ones([99, 99])"


def main():
    if not find_spec("torch"):
        cannot_show("torch is not installed")
    for first in ("torch", "tensorflow"):
        print(f"{first} first: {ending_of([sys.executable, '-c', f'import {first}; {WORK}']).how}")


if __name__ == "__main__":
    main()
