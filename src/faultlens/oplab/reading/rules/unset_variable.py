from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.op_findings import OpFinding
from faultlens.oplab.reading.rule import Rule, good
from faultlens.oplab.reading.types import is_plain
from faultlens.oplab.reading.unit import Followed


class UnsetVariable(Rule):
    """A number that is declared and not set has whatever value was in that memory: results that change from run to
    run. A member that neither the constructor nor its declaration sets is the same for the life of the kernel."""

    code = "OP129"
    slug = "unset-variable"
    severity = "error"
    headline = "a variable or member is used before it is set"

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        for event in good(followed.of("unset")):
            yield self.found(
                event, f"`{event.name}` is used before it is set", "set it where it is declared",
                f"float {event.name} = 0;", followed=followed,
            )  # fmt: skip
        owner = followed.owner
        if owner is None or not followed.kernels or owner.constructor is None or not followed.computes:
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
            read = next((node for node in followed.function.body.find("identifier") if node.text == member.name), None)
            if read is not None:
                yield self.found(
                    read, f"the member `{member.name}` is never set", "set it in the constructor",
                    f'OP_REQUIRES_OK(ctx, ctx->GetAttr("{member.name.rstrip("_")}", &{member.name}));',
                    followed=followed, related=[("declared here", member.node)],
                )  # fmt: skip
