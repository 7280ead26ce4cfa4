from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.records.op_finding import OpFinding

_LATER = re.compile(r"^(?:Schedule\w*|RunAsync|SchedClosure|async|thread)$")
_WAITS = re.compile(r"\bWait\w*\(|\.join\(|\.get\(\)|BlockingCounter|WaitForNotification|latch|Barrier|\.wait\(")


class OutlivedCapture(Rule):
    """A lambda that is scheduled and captures by reference (`[&]`) runs when the function has returned: its variables
    are gone, and what it reads and writes is somebody else's stack. Capture by value (`[=]`, `[ctx, done]`), or wait
    before the function returns."""

    code = "OP133"
    slug = "outlived-capture"
    severity = "error"
    headline = "a lambda that runs later refers to variables that are gone"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in summary.of("parallel"):
            if not _LATER.match(event.name) or _WAITS.search(event.point.function.body.text):
                continue
            for node in event.node.find("lambda_expression"):
                captures = node.get("captures")
                by_reference = captures is not None and re.search(r"\[\s*&\s*[\],]|[\[,]\s*&\w", captures.text)
                if by_reference and captures is not None:
                    yield self.found(
                        captures,
                        "this runs when the function has returned, and refers to its variables",
                        "capture by value",
                        "[ctx, done] { … }",
                        summary=summary,
                    )
