from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts, not_empty, speaks_of
from faultlens.custom_op.check.interpret.buffer_symbols import Dim, NumElements
from faultlens.custom_op.check.interpret.composition import LOW, parts, tensors_in
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant, linear
from faultlens.custom_op.check.interpret.symbols import ONE, Attr, Symbol, is_binary
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.limits import unlimited
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.wording import context_of, tensor_named
from faultlens.records.op_finding import OpFinding

_ENDS = {
    "vector": "throws std::length_error or std::bad_alloc, and the process ends",
    "resize": "throws std::length_error or std::bad_alloc, and the process ends",
    "reserve": "throws std::length_error or std::bad_alloc, and the process ends",
    "assign": "throws std::length_error or std::bad_alloc, and the process ends",
    "new": "throws std::bad_alloc, and the process ends",
    "malloc": "allocates too little or nothing",
    "shape": "ends the process (CHECK) where it is negative",
    "stack": "runs out of the stack",
}


class SizeFromData(Rule):
    """A number of elements that comes from a tensor's values, or from an attribute, is whatever the caller wrote: a
    negative one, or more than there is memory. `std::vector` and `new` then throw, and an exception that leaves
    `Compute` ends the process; `TensorShape({n})` ends it itself (CHECK) where `n` is negative. A shape that is only
    too large is no crash: `allocate_output` returns RESOURCE_EXHAUSTED (measured with 2^50 elements).

    ```cpp
    OP_REQUIRES(ctx, n >= 0 && n <= kMost, errors::InvalidArgument("n must be in [0, ", kMost, "], not ", n));
    ```
    """

    code = "OP106"
    slug = "size-from-data"
    severity = "error"
    headline = "memory is allocated by a number from data that nothing has limited"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        for event in good(summary.of("size")):
            if event.point.in_try and event.name != "shape":
                continue
            for size in event.by:
                found = unlimited(event.point, size)
                if found is not None and (event.name != "shape" or LOW in found[1]):
                    yield self._finding(event, summary, f"a value from {tensor_named(found[0].buffer, summary.op)}")
                    break
                if event.name == "shape" and (why := _negative(event, size)):
                    yield self._finding(event, summary, why)
                    break
                attribute = _open_attribute(event, size, summary.op)
                if attribute:
                    yield self._finding(event, summary, f"the attribute `{attribute}`", attribute)
                    break

    def _finding(self, event: Event, summary: FunctionSummary, what: str, attribute: str = "") -> OpFinding:
        least = ">= 0" if event.name == "shape" else ">= 0 && size <= kMost"
        context = context_of(event.node)
        where = 'in the constructor, or in the registration: Attr("k: int >= 0")' if attribute else "check it first"
        return self.found(
            event,
            f"{what} decides how much is allocated, unchecked: it {_ENDS.get(event.name, 'may be anything')}",
            where,
            f'OP_REQUIRES({context}, size {least},\n            errors::InvalidArgument("not a size: ", size));',
            summary=summary,
            severity="warning" if attribute else None,
        )


def _negative(event: Event, size: Symbol) -> str:
    """n - k + 1, and nothing has compared the two."""
    inner = size
    while is_binary(inner, "/") or (is_binary(inner, "+") and constant(inner.right) is not None):
        inner = inner.left
    taken = [atom for atom, count in linear(inner).items() if count < 0]
    given = [atom for atom, count in linear(inner).items() if count > 0]
    if (
        not taken
        or not given
        or not all(atom == ONE or isinstance(atom, (NumElements, Dim, Attr)) for atom in (*taken, *given))
    ):
        return ""
    for fact in facts(event.point):
        speaks = parts(fact.condition)
        if all(atom == ONE or atom in speaks for atom in (*taken, *given)):
            return ""
    if taken == [ONE] and all(not_empty(event.point, tensor) for tensor in tensors_in(inner)):
        return ""
    return "a difference of sizes"


def _open_attribute(event: Event, size: Symbol, op: Op | None) -> str:
    """A number that the registration does not limit from below, used as it is."""
    if not isinstance(size, Attr) or speaks_of(event.point, size) or op is None:
        return ""
    known = op.attributes.get(size.name)
    if known is None or known.kind != "int" or known.least is not None:
        return ""
    return size.name if not any(size in parts(fact.condition) for fact in event.point.facts) else ""
