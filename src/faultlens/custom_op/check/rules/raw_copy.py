from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Pointer
from faultlens.custom_op.check.interpret.symbols import Symbol
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.types import tidy
from faultlens.records.op_finding import OpFinding

OWNERS = ("tstring", "Tensor", "Variant", "ResourceHandle")  # tidy() calls every string a tstring
BYTEWISE = ("memcpy", "memmove", "memset")


class RawCopy(Rule):
    """Strings, tensors and variants own memory. Copied byte by byte, two of them own the same: both free it, and what
    the target owned before is lost. Short strings live in place, so that it often seems to work.

    ```cpp
    std::copy(in, in + count, out);
    ```
    """

    code = "OP136"
    slug = "raw-copy"
    severity = "error"
    headline = "objects that own memory are copied as bytes"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("copy")):
            kind = next((found for each in (event.on, *event.by[:1]) if (found := _owner(each))), "")
            if event.name in BYTEWISE and kind:
                yield self.found(
                    event,
                    f"`{event.name}` copies {kind} objects as bytes: two of them then own the same memory",
                    "copy them as objects",
                    "std::copy(in, in + count, out);",
                    summary=summary,
                )


def _owner(value: Symbol) -> str:
    kind = tidy(value.type) if isinstance(value, Pointer) else ""
    return kind if kind in OWNERS else ""
