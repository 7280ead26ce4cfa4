"""Calls one function of planted.cu, as a Python program calls an op: `python drive.py LIBRARY past_the_end`."""

import ctypes
import sys


def call(library: ctypes.CDLL, name: str) -> int:
    return getattr(library, name)()


if __name__ == "__main__":
    print(sys.argv[2], call(ctypes.CDLL(sys.argv[1]), sys.argv[2]))
