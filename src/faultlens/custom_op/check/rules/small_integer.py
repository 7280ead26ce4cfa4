from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.buffer_symbols import Dim, NumElements, is_input_element
from faultlens.custom_op.check.interpret.composition import HIGH, parts
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.linear import constant
from faultlens.custom_op.check.interpret.symbols import Binary, Symbol, Unsigned, is_binary
from faultlens.custom_op.check.interpret.unit import FunctionSummary
from faultlens.custom_op.check.limits import bounded, limits
from faultlens.custom_op.check.rule import Rule, good
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.syntax.types import is_small_integer
from faultlens.custom_op.check.wording import short
from faultlens.records.op_finding import OpFinding

LOOPS = ("for_statement", "for_range_loop", "while_statement", "do_statement")


class SmallInteger(Rule):
    """A product of sizes does not fit into 32 bits where a tensor has more than 2,147,483,647 elements: 8 GiB of
    float32, or two values of 65,536 that the caller gave. It wraps, becomes negative or small, passes the check that
    follows, and the buffer that is allocated with it is too short for what the loops write. `int64_t` costs nothing:

    ```cpp
    const int64_t cells = static_cast<int64_t>(height) * width;
    ```
    """

    code = "OP128"
    slug = "small-integer"
    severity = "warning"
    headline = "a product of sizes is computed in 32 bits"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        allocated = {part for event in summary.of("size", "copy") for size in event.by for part in parts(size)}
        told: set[Symbol] = set()  # products
        for event in good(summary.of("multiply")):
            if not is_small_integer(event.detail):
                continue
            if event.name == "+=":
                yield from self._sum(event, summary)
                continue
            kinds = [_kind(event, factor) for factor in event.by]
            if not all(kinds):
                continue
            product = Binary("*", *event.by)
            told.add(product)
            by_data = "data" in kinds
            left, right = event.node.get("left"), event.node.get("right")
            yield self.found(
                event,
                f"this product of {'values that the caller gives' if by_data else 'sizes'} is computed in 32 bits",
                "compute it in 64",
                f"static_cast<int64_t>({short(left, 30)}) * {short(right, 30)}",
                summary=summary,
                severity=None if by_data or product in allocated else "note",
            )

        yield from self._narrowed(summary, allocated, told)

    def _narrowed(self, summary: FunctionSummary, allocated: set[Symbol], told: set[Symbol]) -> Iterator[OpFinding]:
        """int total = x.dim_size(0) * w.dim_size(0): the product is right, what is kept of it may not be."""
        for event in good(summary.of("narrow")):
            products = [part for part in parts(event.by[0]) if is_binary(part, "*") and part not in told]
            large = [part for part in products if all(_kind(event, factor) for factor in part.operands())]
            if not large or event.by[0] not in allocated or bounded(event.point, event.by[0]):
                continue
            told.update(large)
            yield self.found(
                event,
                f"a product of sizes is cut to 32 bits here ({event.detail}), and memory is allocated by it",
                "keep it in 64",
                "const int64_t size = …;",
                summary=summary,
            )

    def _sum(self, event: Event, summary: FunctionSummary) -> Iterator[OpFinding]:
        """total += lengths(i); and later the total is compared with a size, or decides about one."""
        target = event.node.get("left")
        name = target.text if target is not None else ""
        if _kind(event, event.by[0]) == "data" and _decides(name, event.node):
            yield self.found(
                event,
                f"`{name}` adds up values that the caller gives in 32 bits: it wraps, and passes the check behind",
                "add them up in 64",
                f"int64_t {name} = 0;",
                summary=summary,
            )


def _decides(name: str, node: Node) -> bool:
    """The sum is asked, or a size, only behind the loop: in the loop, a check of each step would see that it wraps."""
    loop = next((each for each in node.above() if each.kind in LOOPS), None)
    function = next((each for each in node.above() if each.kind == "function_definition"), None)
    if loop is None or function is None or not name.isidentifier():
        return False
    compared = rf"\b{name}\s*(?:[<>](?![<>])|[=!]=)|(?:(?<![<>-])[<>]=?|[=!]=)\s*{name}\b"
    sized = rf"(?:TensorShape|allocate_\w+|resize|reserve|vector<[^;()]*>\s*\w*)\s*\([^;]*\b{name}\b"
    behind = function.text.encode()[loop.end - function.start :].decode("utf-8", "replace")
    return not re.search(compared, loop.text) and re.search(f"{compared}|{sized}", behind) is not None


def _kind(event: Event, factor: Symbol) -> str:
    """ "data" or "size" where it can be large; "" where it is limited or not known."""
    if isinstance(factor, Unsigned):
        factor = factor.value
    if constant(factor) is not None:
        return ""
    if is_input_element(factor):
        narrow = factor.type in ("bool", "int8", "uint8", "int16", "uint16")  # too small to matter
        return "" if narrow or HIGH in limits(event.point, factor) else "data"
    if isinstance(factor, (NumElements, Dim)):
        return "" if bounded(event.point, factor) else "size"
    if is_binary(factor, "+", "-"):  # n + 1
        return next((kind for part in factor.operands() if (kind := _kind(event, part))), "")
    if is_binary(factor, "/", ">>"):
        return _kind(event, factor.left)
    if is_binary(factor, "*"):
        inner = [_kind(event, part) for part in factor.operands()]
        return "data" if "data" in inner else "size" if "size" in inner else ""
    return ""
