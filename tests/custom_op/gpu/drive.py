"""Calls one function of planted.cu, as a Python program calls an op: `python drive.py LIBRARY past_the_end`.

With `torch` behind it, the function gets a tensor of PyTorch's."""

import ctypes
import sys


def call(library: ctypes.CDLL, name: str) -> int:
    return getattr(library, name)()


def call_with_tensor(library: ctypes.CDLL, name: str) -> int:
    import torch

    values, _other = (torch.ones(256, device="cuda") for _ in range(2))
    return getattr(library, name)(ctypes.c_void_p(values.data_ptr()), values.numel())


if __name__ == "__main__":
    how = call_with_tensor if sys.argv[3:] == ["torch"] else call
    print(sys.argv[2], how(ctypes.CDLL(sys.argv[1]), sys.argv[2]))
