from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.call_symbols import Status
from faultlens.custom_op.check.interpret.statements import STATUSES
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import Node, name_of
from faultlens.custom_op.check.wording import context_of, short
from faultlens.records.op_finding import OpFinding
from faultlens.records.severity import Severity

_GIVE = ("allocate_output", "allocate_temp", "allocate_persistent", "forward_input_or_allocate_output",
         "forward_input_or_allocate_temp", "input", "GetAttr", "LookupResource", "input_list",
         "output_list")  # fmt: skip


class IgnoredStatus(Rule):
    """Calls that return a Status may fail: `allocate_output` when memory is short or the shape is impossible, `GetAttr`
    when the attribute has another type. Then what they should have filled in stays null or unset, and the next line
    uses it: a segmentation fault instead of an error that Python can catch.

    ```cpp
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
    ```
    """

    code = "OP109"
    slug = "ignored-status"
    severity = "error"
    headline = "a status is thrown away, and the result is used"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in summary.of("ignored"):
            name = event.on.function if isinstance(event.on, Status) else _called(event.node)
            fills = re.search(r"[(,]\s*&\s*\w", event.node.text) is not None
            own = (
                summary.unit.function(name) is not None
                or summary.unit.method(summary.function.of_class, name) is not None
            )
            if event.name == "IgnoreError" and name not in (*_GIVE, *STATUSES) and not (fills and own):
                continue
            context = context_of(event.node)
            inner = short(event.node, 60).removesuffix(".IgnoreError()")
            yield self.found(
                event,
                f"nobody looks at the status of `{name}`",
                "wrap the call",
                f"OP_REQUIRES_OK({context}, {inner});",
                summary=summary,
                severity=_severity(name, event.name == "IgnoreError", fills),
            )
        yield from self._kept(summary)

    def _kept(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        """`Status s = ctx->allocate_output(…);` that is never asked."""
        for node in summary.function.body.find("init_declarator"):
            value, name = node.get("value"), node.get("declarator")
            if value is None or name is None or value.kind != "call_expression" or name.kind != "identifier":
                continue
            function = value.get("function")
            called = name_of(function)
            kind = node.parent.get("type") if node.parent is not None else None
            if called not in (*_GIVE, *STATUSES) or kind is None or not kind.text.endswith(("Status", "auto")):
                continue
            uses = [each for each in summary.function.body.find("identifier") if each.text == name.text]
            if len(uses) == 1:
                yield self.found(
                    value,
                    f"the status of `{called}` is kept in `{name.text}`, which nobody looks at",
                    "ask it",
                    f"OP_REQUIRES_OK({context_of(node)}, {name.text});",
                    summary=summary,
                )


def _called(call: Node) -> str:
    """`Parse` of `Parse(text, &range).IgnoreError()`."""
    function = call.get("function")
    inner = function.get("argument") if function is not None and function.kind == "field_expression" else None
    if inner is not None and inner.kind == "call_expression" and name_of(function) == "IgnoreError":
        return name_of(inner.get("function"))
    return name_of(function)


def _severity(name: str, said_so: bool, fills: bool) -> Severity:
    """An attribute that may be missing, and somebody said so: the variable keeps its value."""
    if name == "GetAttr" and said_so:
        return "note"
    return "error" if name in _GIVE or fills else "warning"
