from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import above_zero, facts, speaks_of, told
from faultlens.custom_op.check.interpret.buffer_symbols import Element, Length, Vector, is_input_element
from faultlens.custom_op.check.interpret.call_symbols import DataOf, Runs, Whole
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.state import Fact
from faultlens.custom_op.check.interpret.symbols import Attr, Negative, Symbol, Unsigned
from faultlens.custom_op.check.interpret.unit import FunctionSummary
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

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("divide")):
            divisor = _bare(event.by[0])
            if event.name == "/" and not is_integer(event.detail):
                continue
            what = _what(event, divisor, summary.op)
            if what:
                context = context_of(event.node)
                yield self.found(
                    event,
                    f"an integer is divided by {what}, which may be 0",
                    "check it first",
                    f'OP_REQUIRES({context}, divisor != 0, errors::InvalidArgument("must not be 0"));',
                    summary=summary,
                )


def _bare(symbol: Symbol) -> Symbol:
    while isinstance(symbol, (Unsigned, Negative)):
        symbol = symbol.value
    return symbol


def _what(event: Event, divisor: Symbol, op: Op | None) -> str:
    if constant(divisor) == 0:
        return "0"
    if is_input_element(divisor):
        if _not_zero(event, divisor) or (divisor.type and not is_integer(divisor.type)):
            return ""
        return f"a value from {tensor_named(divisor.buffer, op)}"
    if isinstance(divisor, Attr) and op is not None and not speaks_of(event.point, divisor):
        known = op.attributes.get(divisor.name)
        if known is not None and known.kind == "int" and (known.least is None or known.least <= 0):
            return f"the attribute `{divisor.name}`"
    if _may_stay_empty(event, divisor):
        return "the size of a container that only some values get into"
    return ""


def _may_stay_empty(event: Event, divisor: Symbol) -> bool:
    """if (x(i) > 0) kept.push_back(i); … % kept.size(): this path went through the loop and put nothing in."""
    container = divisor.subject if isinstance(divisor, Length) else None
    if not isinstance(container, Vector) or container.changed is None:
        return False
    loops = event.node.source.root.find("for_statement", "for_range_loop", "while_statement", "do_statement")
    if not any(loop.start == container.changed for loop in loops):
        return False
    return not any(
        isinstance(part, Length) and isinstance(part.subject, Vector) and part.subject.place == container.place
        for fact in event.point.facts
        for part in _all_parts(fact)
    )


def _all_parts(fact: Fact) -> frozenset[Symbol]:
    """Also of what limits a loop that runs."""
    limit = parts(fact.condition.limit) if isinstance(fact.condition, Runs) else frozenset()
    return parts(fact.condition) | limit


def _not_zero(event: Event, divisor: Element) -> bool:
    """`!= 0`, `> 0`, also in a loop before that checks all values."""
    return any(
        above_zero(fact, part) if isinstance(part, Element) else True
        for fact in facts(event.point)
        for part in told(fact.condition)
        if (isinstance(part, Element) and part.buffer == divisor.buffer)
        or part in (Whole(divisor.buffer), DataOf(divisor.buffer))
    )
