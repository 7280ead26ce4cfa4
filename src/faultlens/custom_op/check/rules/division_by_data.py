from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import above_zero, facts, speaks_of, told
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.state import Fact
from faultlens.custom_op.check.interpret.symbols import Symbol, constant, is_tensor, parts
from faultlens.custom_op.check.interpret.unit import Followed
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.types import is_integer
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding


class DivisionByData(Rule):
    """An integer divided by zero, or taken modulo zero, ends the process with SIGFPE. Where the divisor comes from a
    tensor's values or from an attribute, the caller can make it zero.

    ```cpp
    OP_REQUIRES(ctx, d != 0, errors::InvalidArgument("must not be 0"));
    ```

    For an attribute the registration can say it: `Attr("stride: int >= 1")`."""

    code = "OP107"
    slug = "division-by-data"
    severity = "error"
    headline = "an integer is divided by a value that the caller can make zero"

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        for event in good(followed.of("divide")):
            divisor = _bare(event.by[0])
            if event.name == "/" and not is_integer(event.detail):
                continue
            what = _what(event, divisor, followed.op)
            if what:
                context = context_of(event.node)
                yield self.found(
                    event,
                    f"an integer is divided by {what}, which may be 0",
                    "check it first",
                    f'OP_REQUIRES({context}, divisor != 0, errors::InvalidArgument("must not be 0"));',
                    followed=followed,
                )


def _bare(symbol: Symbol) -> Symbol:
    while symbol[0] in ("unsigned", "neg"):
        symbol = symbol[1]
    return symbol


def _what(event: Event, divisor: Symbol, op: Op | None) -> str:
    if constant(divisor) == 0:
        return "0"
    if divisor[0] == "elem" and is_tensor(divisor[1]) and divisor[1][0] == "input":
        if _not_zero(event, divisor):
            return ""
        if str(divisor[3]) and not is_integer(str(divisor[3])):
            return ""
        return f"a value from {tensor_named(divisor[1], op)}"
    if divisor[0] == "attr" and op is not None and not speaks_of(event.place, divisor):
        known = op.attributes.get(str(divisor[1]))
        if known is not None and known.kind == "int" and (known.least is None or known.least <= 0):
            return f"the attribute `{divisor[1]}`"
    if _may_stay_empty(event, divisor):
        return "the size of a container that only some values get into"
    return ""


def _may_stay_empty(event: Event, divisor: Symbol) -> bool:
    """if (x(i) > 0) kept.push_back(i); … % kept.size(): this path went through the loop and put nothing in."""
    if divisor[0] != "size" or divisor[1][0] != "vec" or len(divisor[1]) < 4:
        return False
    container, since = divisor[1][:3], divisor[1][-1]
    loops = event.node.source.root.find("for_statement", "for_range_loop", "while_statement", "do_statement")
    if not any(loop.start == since for loop in loops):
        return False
    return not any(
        part[0] == "size" and part[1][:3] == container for fact in event.place.facts for part in _all_parts(fact)
    )


def _all_parts(fact: Fact) -> frozenset[Symbol]:
    """Also of what limits a loop that runs."""
    limit = fact.condition[2] if fact.condition[0] == "runs" else None
    return parts(fact.condition) | (parts(limit) if limit else frozenset())


def _not_zero(event: Event, divisor: Symbol) -> bool:
    """`!= 0`, `> 0`, also in a loop before that checks all values."""
    return any(
        above_zero(fact, part) if part[0] == "elem" else True
        for fact in facts(event.place)
        for part in told(fact.condition)
        if (part[0] == "elem" and part[1] == divisor[1]) or part in (("whole", divisor[1]), ("data", divisor[1]))
    )
