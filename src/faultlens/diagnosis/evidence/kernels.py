"""The kernel that the crash is about, where one was found in flight: the surest name of an op there is."""

from __future__ import annotations

import re

from faultlens.knowledge.op_names import registered
from faultlens.records.crash import Crash, Kernel, Tensor
from faultlens.text.safe import ELLIPSIS, one_line, shorten

# Rewritten ops carry the name of the one that the user wrote: "_MklNativeConv2D", "_FusedMatMul".
_REWRITTEN = re.compile(r"^_(?:Mkl)?(?:Native|Eager)?(?:Fused)?(?=[A-Z])")
_INPUTS_SHOWN = 6
_DIMENSIONS_SHOWN, _LONGEST_NUMBER = 8, 24


def kernel_at_fault(crash: Crash) -> Kernel | None:
    return next((kernel for kernel in crash.kernels if kernel.at_fault), None)


def user_op(kernel: Kernel) -> str:
    """The op as the user knows it, before TensorFlow rewrote the graph."""
    plain = _REWRITTEN.sub("", kernel.op)
    return plain if registered(plain) else kernel.op


def in_words(kernel: Kernel) -> str:
    """ "MatMul was computing float32 [2, 3], float32 [3, 4]" """
    doing = "was computing" if kernel.stage == "compute" else "was being set up"
    shown = ", ".join(tensor_in_words(each) for each in kernel.inputs[:_INPUTS_SHOWN])
    more = ", …" if len(kernel.inputs) > _INPUTS_SHOWN else ""
    return f"{user_op(kernel)} {doing} {shown}{more}".rstrip()


def tensor_in_words(tensor: Tensor | None) -> str:
    """ "float32 [3, 4, 8]"."""
    if tensor is None:
        return "not set"
    dimensions = [shorten(str(dimension), _LONGEST_NUMBER) for dimension in tensor.shape[:_DIMENSIONS_SHOWN]]
    if len(tensor.shape) > _DIMENSIONS_SHOWN:
        dimensions.append(f"{ELLIPSIS} {len(tensor.shape)} dimensions in all")
    return f"{one_line(tensor.dtype, 40)} [{', '.join(dimensions)}]"
