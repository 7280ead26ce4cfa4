"""What native/outputs.cc wrote: elements of outputs that the op left as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faultlens.report.quantities import count


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
    def words(self) -> str:
        all_of = "no element" if self.unset == self.elements else ""
        some = f"{count(self.unset, 'element')} of {self.elements:,}"
        what = f"{all_of} of output {self.output} is" if all_of else f"{some} of output {self.output} {self._verb}"
        return f"{what} {'ever' if all_of else 'never'} set"

    @property
    def _verb(self) -> str:
        return "is" if self.unset == 1 else "are"

    @property
    def fact(self) -> str:
        return f"{self.dtype} {self.shape}: number {self.first} is what was in the memory before, or computed from it"


def parse(text: str) -> Iterator[Unwritten]:
    for line in text.splitlines():
        words = line.split("\t")
        if len(words) == 9:
            op, node, output, address, unset, elements, first, dtype, shape = words
            numbers = (int(output), int(address, 16), int(unset), int(elements), int(first))
            yield Unwritten(op, node, *numbers, dtype, shape)
