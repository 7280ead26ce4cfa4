from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import is_input_element
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import name_of
from faultlens.records.op_finding import OpFinding

_ADDS = ("push_back", "emplace_back", "push", "append", "push_front")  # a map has as many entries as there are keys
_KEYS = ("emplace", "insert", "try_emplace", "insert_or_assign")  # grow without end only where data are the keys
_TAKES = r"clear|erase|pop|pop_back|pop_front|resize|reset|swap|assign|shrink_to_fit|size|extract"


class Grows(Rule):
    """A member, static or global container that every call adds to and nothing ever empties grows as long as the
    program runs: training dies of memory after hours, and no single call looks guilty. A Tensor in it keeps a whole
    buffer alive each time."""

    code = "OP126"
    slug = "grows-without-end"
    severity = "error"
    headline = "a container that outlives the call only ever grows"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        if not summary.computes:
            return
        everything = "\n".join(source.data.decode("utf-8", "replace") for source in summary.unit.sources)
        told = set()
        for event in summary.of("assign"):
            method = name_of(event.node.get("function")) if event.node.kind == "call_expression" else ""
            if event.detail not in ("member", "static", "global") or event.name in told:
                continue
            by_key = (method in _KEYS or event.node.kind == "subscript_expression") and _is_data(event)
            if method not in _ADDS and not by_key:
                continue
            name = re.escape(event.name)
            emptied = (
                rf"\b{name}\s*(?:\.|->)\s*(?:{_TAKES})\b|\b{name}\s*=(?!=|\s*\*?\s*new\b)"
                rf"|(?:swap|move|exchange)\([^;]*\b{name}\b"
            )
            if re.search(emptied, everything):
                continue
            told.add(event.name)
            yield self.found(
                event,
                f"`{event.name}` grows with every call, and nothing ever takes anything out",
                "keep it in a local variable, or limit it",
                f"if ({event.name}.size() > kMost) {event.name}.clear();",
                summary=summary,
                severity="warning" if by_key else None,
            )


def _is_data(event: Event) -> bool:
    """The key is text or a number from an input, and the container is a map or a set."""
    return any(is_input_element(part) for value in event.by for part in parts(value))
