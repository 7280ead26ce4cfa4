"""A buffer was changed while a tensor shared it."""

from __future__ import annotations

from faultlens.diagnosis.causes.base import Finding
from faultlens.diagnosis.causes.buffers.base import BufferCause
from faultlens.diagnosis.evidence.case import Case


class AliasedBuffer(BufferCause):
    """
    ## What it is
    A tensor shares the memory of a NumPy array, and the program goes on writing to the array. `from_dlpack` always
    shares; `tf.data.Dataset.from_generator` and graph-mode `numpy_function` share when the address happens to be a
    multiple of 64; `tf.constant` and `convert_to_tensor` copy.

    ## How it looks
    No crash: wrong numbers. Batches repeat or mix, and it depends on the size of the array.

    ## How to prove it
    Yield `array.copy()`, or pass copies to dlpack: the numbers change.

    ## How to fix it
    Copy before the buffer is used again, or use a fresh buffer for each batch.
    """

    slug = "aliased-buffer"
    code = "FL703"
    headline = "a buffer was changed while a tensor shared it"

    def examine(self, case: Case) -> Finding | None:  # noqa: ARG002
        return None  # it ends with wrong numbers, never with a crash: no record of an end can show it
