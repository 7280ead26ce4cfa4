from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.records.op_finding import OpFinding

# Both: what counts by blocks alone, or by the threads of one block, is often exact.
_OF_A_GRID = re.compile(r"\bblockIdx\b"), re.compile(r"\bthreadIdx\b")


class CudaBounds(Rule):
    """A grid has a whole number of blocks, so more threads run than there are elements. A CUDA kernel that indexes by
    its thread without a comparison writes behind the end with the last block: "an illegal memory access was
    encountered", reported by whatever is called next.

    ```cpp
    for (int i : GpuGridRangeX<int>(n)) out[i] = in[i];
    ```
    """

    code = "OP134"
    slug = "cuda-bounds"
    severity = "error"
    headline = "a CUDA kernel indexes by its thread without a limit"

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        for function in unit.functions:
            head = function.node.source.data[function.node.start : function.body.start].decode("utf-8", "replace")
            if "__global__" in head and any(function.node.source is each for each in unit.sources):
                yield from self._kernel(function.body, function.name)

    def _kernel(self, body: Node, name: str) -> Iterator[OpFinding]:
        if any(
            node.kind
            in ("if_statement", "for_statement", "while_statement", "for_range_loop", "conditional_expression")
            for node in body.walk()
        ):
            return
        made_of = {
            declared.text: node.text
            for node in body.find("init_declarator")
            if (declared := node.get("declarator")) is not None
        }
        for node in body.find("subscript_expression"):
            index = node.get("indices")
            used = re.findall(r"\w+", index.text) if index is not None else []
            whole = " ".join([*used, *(made_of.get(name, "") for name in used)])
            if all(each.search(whole) for each in _OF_A_GRID):
                yield self.found(
                    node,
                    f"`{name}` indexes by its thread, and there are more threads than elements",
                    "compare first",
                    "if (i < n) out[i] = in[i];",
                    op=name,
                )
                return
