"""What native/outputs.cc wrote: elements of outputs that the op left as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faultlens.text.quantities import count


class Unwritten(NamedTuple):
    op: str
    node: str
    output: int
    address: int  # of the call of allocate_output, in the library
    unset: int
    elements: int
    first: int
    dtype: str
    shape: str

    @property
    def rule(self) -> str:
        return "unwritten-output" if self.elements else "missing-output"

    @property
    def words(self) -> str:
        if not self.elements:
            return f"output {self.output} is not there when Compute returns, and no error is set"
        if self.unset == self.elements:
            return f"no element of output {self.output} is ever set"
        some = f"{count(self.unset, 'element')} of {self.elements:,}"
        return f"{some} of output {self.output} {'is' if self.unset == 1 else 'are'} never set"

    @property
    def fact(self) -> str:
        if not self.elements:
            return f"node {self.node} returned without it"
        return f"{self.dtype} {self.shape}: number {self.first} is what was in the memory before, or computed from it"


def parse(text: str) -> Iterator[Unwritten]:
    for line in text.splitlines():
        words = line.split("\t")
        if len(words) == 9:
            op, node, output, address, unset, elements, first, dtype, shape = words
            numbers = (int(output), int(address, 16), int(unset), int(elements), int(first))
            yield Unwritten(op, node, *numbers, dtype, shape)
