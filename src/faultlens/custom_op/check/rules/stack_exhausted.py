from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.interpret.buffer_symbols import ByteSize, Dim, Element, Length, NumElements, is_tensor
from faultlens.custom_op.check.interpret.composition import origins, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.symbols import Attr
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.types import size_of
from faultlens.records.op_finding import OpFinding

LARGE = 1 << 20  # bytes; threads of TensorFlow have 8 MiB where the limit is the usual one, others less
_HALVES = re.compile(r"/\s*2\b|>>\s*1\b|\bmid\b|\bmiddle\b|\bhalf\b|\bpivot\b|/ 2")
_COUNTED = r"(?:depth|level|limit|remaining|budget|rank)"  # compared, or passed on by one less or more
_DEPTH = re.compile(
    rf"{_COUNTED}\w*\s*(?:[<>]|[=!]=|--|[+-]\s*1\b)|(?:[<>]=?|[=!]=|\+\+|--)\s*\w*{_COUNTED}\w*\b(?!\s*\()",
    re.IGNORECASE,
)
_FROM_INPUT = (NumElements, Dim, Element, Attr, ByteSize, Length)


class StackExhausted(Rule):
    """The stack of a thread is small (8 MiB by default, less in pools of other libraries) and not checked: an array
    larger than it, an array whose length comes from a tensor, or a recursion as deep as the input is long ends in a
    segmentation fault. Use `std::vector` or `allocate_temp` for memory, and a loop with an explicit stack (or a limit
    on the depth) instead of recursion."""

    code = "OP118"
    slug = "stack-exhausted"
    severity = "error"
    headline = "an array or a recursion that the stack may not hold"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("size")):
            if event.name == "stack":
                yield from self._array(event, summary)
        yield from self._standard_arrays(summary)
        told = set()
        for event in summary.of("recursion"):
            if event.name not in told and _is_unbounded(event):
                told.add(event.name)
                yield self.found(
                    event,
                    f"`{event.name}` calls itself, as deep as the input is long",
                    "use a loop with a stack of its own, or limit the depth",
                    "std::vector<Node> waiting;  // push, pop, until it is empty",
                    summary=summary,
                    severity="warning",
                )

    def _standard_arrays(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for node in summary.function.body.find("declaration"):
            kind = node.get("type")
            found = re.fullmatch(r"(?:std::)?array<([\w:]+),\s*(.+)>", kind.text) if kind is not None else None
            if found is None or "static" in node.text.partition("<")[0]:
                continue
            count = summary.unit.constants.get(found[2].strip())
            length = int(found[2]) if found[2].isdigit() else count.value if count else _shifted(found[2])
            size = length * (size_of(found[1]) or 1)
            if size >= LARGE:
                yield self.found(
                    node, f"{size / (1 << 20):.0f} MiB on the stack", "put it on the heap",
                    "std::vector<float> values(n);", summary=summary,
                )  # fmt: skip

    def _array(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        size = event.by[0]
        known = constant(size)
        each = size_of(event.detail) or 1
        if known is not None:
            if known * each >= LARGE:
                yield self.found(
                    event, f"{known * each / (1 << 20):.0f} MiB on the stack", "put it on the heap",
                    "std::vector<float> values(n);", summary=summary,
                )  # fmt: skip
            return
        from_input = [part for part in origins(size) if isinstance(part, _FROM_INPUT)]
        if not from_input or any(
            part in parts(fact.condition) for fact in facts(event.point) for part in (*from_input, size)
        ):
            return
        yield self.found(
            event,
            "the length of an array on the stack comes from the input: a large one runs out of it",
            "put it on the heap",
            "std::vector<float> values(n);",
            summary=summary,
        )


def _shifted(text: str) -> int:
    """1 << 20, 1024 * 1024."""
    found = re.fullmatch(r"\s*(\d+)\s*(<<|\*)\s*(\d+)\s*", text)
    if found is None or len(found[3]) > 9:
        return 0
    return int(found[1]) << min(int(found[3]), 40) if found[2] == "<<" else int(found[1]) * int(found[3])


def _is_unbounded(event: Event) -> bool:
    """Nothing halves the work or counts the depth."""
    calls = event.node.text
    function = next((each for each in event.node.above() if each.kind == "function_definition"), None)
    body = function.text if function is not None else ""
    steps = re.search(r"[\w\])]\s*[+-]\s*1\b|->next|\.next\b|next_", calls)
    by_data = any(isinstance(part, Element) and is_tensor(part.buffer) for value in event.by for part in origins(value))
    if not steps and not by_data:
        return False
    return not (_HALVES.search(calls) or _HALVES.search(body) or _DEPTH.search(body))
