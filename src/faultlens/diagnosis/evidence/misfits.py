"""Values among the inputs of an op that lead out of its data: indices, splits and sizes that do not fit."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faultlens.diagnosis.evidence.kernels import tensor_in_words
from faultlens.records.crash import Kernel, Tensor

_CODES = {"int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "int16": "h", "int8": "b"}
_MOST = 4096  # values looked at


class Misfit(NamedTuple):
    words: str  # "input 3 (int64 [3]) goes up to 9, and input 1 (int32 [0]) is empty"
    outside: bool  # it must lead out of the data; -1 often means "as it comes"


def misfit(kernel: Kernel | None) -> Misfit | None:
    found = list(_misfits(kernel)) if kernel else []
    return next((each for each in found if each.outside), found[0] if found else None)


def empty_input(kernel: Kernel | None) -> str | None:
    """What has no data: they are said to lie at null."""
    for number, tensor in enumerate(kernel.inputs if kernel else ()):
        if tensor is not None and 0 in tensor.shape:
            return f"{_named(number, tensor)} is empty: its data lie at null"
    return None


def _misfits(kernel: Kernel) -> Iterator[Misfit]:
    inputs = [(number, tensor) for number, tensor in enumerate(kernel.inputs) if tensor is not None]
    empty = next((each for each in inputs if 0 in each[1].shape), None)
    for number, tensor in inputs:
        values = _integers(tensor)
        if not values:
            continue
        largest, smallest, name = max(values), min(values), _named(number, tensor)
        others = [each for at, each in inputs if at != number]
        if empty is not None and largest > 0 and empty[0] != number and tensor.shape:
            yield Misfit(f"{name} goes up to {largest}, and {_named(*empty)} is empty", True)
        if smallest < 0:
            yield Misfit(f"{name} contains {smallest}", smallest < -1)
        # As many as there are elements: a split may be that, an index may not.
        if tensor.shape and others and largest > max(math.prod(each.shape) for each in others):
            yield Misfit(f"{name} goes up to {largest}, which no other input has elements for", True)


def _named(number: int, tensor: Tensor) -> str:
    return f"input {number} ({tensor_in_words(tensor)})"


def _integers(tensor: Tensor) -> Sequence[int]:
    code = _CODES.get(tensor.dtype)
    data = tensor.contents or b""
    if code is None or not data or len(data) != math.prod(tensor.shape) * struct.calcsize(f"<{code}"):
        return ()
    return [int(value) for (value,) in struct.iter_unpack(f"<{code}", data[: _MOST * struct.calcsize(f"<{code}")])]
