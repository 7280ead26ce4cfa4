from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts
from faultlens.custom_op.check.interpret.call_symbols import Result
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.wording import context_of
from faultlens.records.op_finding import OpFinding


class NullPointer(Rule):
    """A pointer that is null on some path is followed: SIGSEGV at a small address. Outputs before they are allocated,
    functions that return nullptr for what they do not know, `find(…)->second` without a look at `end()`, `getenv`."""

    code = "OP120"
    slug = "null-pointer"
    severity = "error"
    headline = "a pointer is followed that is null on a path"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("null")):
            yield self.found(
                event,
                "this pointer is null on a path that leads here",
                "ask it first, or set it on every path",
                f'OP_REQUIRES({context_of(event.node)}, pointer != nullptr, errors::Internal("…"));',
                summary=summary,
            )
        for event in good(summary.of("call")):
            if event.name in ("->second", "->first") and isinstance(event.on, Result) and event.on.function == "find":
                asked = any(event.on in parts(fact.condition) for fact in facts(event.point))
                checked = any(
                    isinstance(part, Result) and part.function in ("count", "contains", "find", "end")
                    for fact in facts(event.point)
                    for part in parts(fact.condition)
                )
                if not asked and not checked and not _compared(event):
                    yield self.found(
                        event,
                        "`find` gives `end()` where there is no such key, and that is followed here",
                        "compare it with end() first",
                        f'OP_REQUIRES({context_of(event.node)}, it != table.end(), errors::NotFound("…"));',
                        summary=summary,
                    )


def _compared(event: Event) -> bool:
    """Somewhere in the function the iterator is compared with something."""
    target = event.node.get("argument")
    name = re.escape(target.text) if target is not None and target.kind == "identifier" else ""
    text = event.point.function.body.text
    return bool(name and re.search(rf"\b{name}\s*[!=]=|[!=]=\s*{name}\b|\({name}\s*=[^=].*[!=]=", text))
