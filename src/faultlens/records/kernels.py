"""TensorFlow's ops in flight, with their tensors."""

from __future__ import annotations

from typing import Any, Literal

from faultlens.records.base import Address, Record
from faultlens.records.threads import Frame


class Tensor(Record, frozen=True):
    """An input of a kernel, as it lay in memory."""

    dtype: str  # "float32", "string", "resource"
    shape: tuple[int, ...]
    address: Address | None = None  # of its buffer
    size: int | None = None  # of its buffer, in bytes
    # Its contents, where they fit the limit and were not left out: plain values as raw little-endian bytes …
    contents: bytes | None = None
    strings: tuple[bytes, ...] | None = None  # … and strings one by one


class Attribute(Record, frozen=True):
    """An attribute of a node. Types are named as in dtypes, shapes are lists with -1 for an unknown dimension."""

    kind: str  # "int", "float", "bool", "string", "type", "shape", "func", "list(int)", …; "other": value is None
    value: Any = None


class Kernel(Record, frozen=True):
    """An op that was being computed (or its kernel being constructed) on some thread when the process stopped."""

    op: str  # its type: "MatMul"
    node: str  # its name in the graph; the type again for eager ops
    thread: int
    stage: Literal["compute", "construct"] = "compute"
    inputs: tuple[Tensor | None, ...] = ()  # None: not set, or not to be read
    attributes: dict[str, Attribute] = {}
    kernel_class: str | None = None  # the C++ class of the kernel
    function: str | None = None  # the graph function it belongs to, where known
    written: Frame | None = None  # the line of the user's code that made the node
    layer: str | None = None  # the Keras layer it belongs to
    layer_made: Frame | None = None  # the line that made this layer, where its code is not the user's
    at_fault: bool = False  # it is the one that the crash (or the hang) is about
