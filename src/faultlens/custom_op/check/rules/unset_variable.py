from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.syntax import arguments
from faultlens.custom_op.check.syntax.types import is_plain
from faultlens.records.op_finding import OpFinding


class UnsetVariable(Rule):
    """A number that is declared and not set has whatever value was in that memory: results that change from run to
    run. A member that neither the constructor nor its declaration sets is the same for the life of the kernel."""

    code = "OP129"
    slug = "unset-variable"
    severity = "error"
    headline = "a variable or member is used before it is set"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("unset")):
            if _set_before(event):
                continue
            yield self.found(
                event, f"`{event.name}` is used before it is set", "set it where it is declared",
                f"float {event.name} = 0;", summary=summary,
            )  # fmt: skip
        owner = summary.owner
        if owner is None or not summary.kernels or owner.constructor is None or not summary.computes:
            return
        constructor = owner.constructor.node.text
        whole = owner.node.text + "".join(function.node.text for function in owner.functions)
        for member in owner.members.values():
            if (
                member.value is not None
                or not is_plain(member.type)
                or "static" in member.type
                or "[" in member.type
                or "atomic" in member.type
            ):
                continue
            name = re.escape(member.name)
            if re.search(rf"\b{name}\b", constructor) or re.search(
                rf"\b{name}\s*(?:=[^=]|\{{)|&\s*(?:this->)?{name}\b|\b{name}\s*\(", whole
            ):
                continue
            read = next((node for node in summary.function.body.find("identifier") if node.text == member.name), None)
            if read is not None:
                yield self.found(
                    read, f"the member `{member.name}` is never set", "set it in the constructor",
                    f'OP_REQUIRES_OK(ctx, ctx->GetAttr("{member.name.rstrip("_")}", &{member.name}));',
                    summary=summary, related=[("declared here", member.node)],
                )  # fmt: skip


def _set_before(event: Event) -> bool:
    """Somewhere above it is set: whether on this path is too hard to say."""
    for node in event.point.function.body.find("assignment_expression", "pointer_expression", "call_expression"):
        if node.start >= event.node.start or (node.start <= event.node.start < node.end):
            continue
        target = node.get("left") or (node.get("argument") if node.operator == "&" else None)
        given = [each.text for each in arguments(node)] if node.kind == "call_expression" else []
        if (target is not None and target.text == event.name) or event.name in given:
            return True
    return False
