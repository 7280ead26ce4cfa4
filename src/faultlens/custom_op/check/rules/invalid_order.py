from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import Node, arguments, name_of
from faultlens.records.op_finding import OpFinding

SORTS = (
    "sort", "stable_sort", "partial_sort", "nth_element", "make_heap", "push_heap", "pop_heap", "sort_heap",
)  # fmt: skip


class InvalidOrder(Rule):
    """`std::sort` and its relatives need an order in which nothing comes before itself. With `<=` or `>=` equal
    elements come before each other: the search for the end of a part runs past the ends of the container, and reads
    and writes what is there. It shows with some equal elements (17 and more), not with few.

    ```cpp
    std::sort(v.begin(), v.end(), [](float a, float b) { return a > b; });
    ```
    """

    code = "OP137"
    slug = "invalid-order"
    severity = "error"
    headline = "a comparator says that equal elements come before each other"

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        for source in unit.sources:
            for call in source.root.find("call_expression"):
                given = arguments(call)
                if name_of(call.get("function")) in SORTS and given and (wrong := _or_equal(given[-1])):
                    yield self.found(
                        wrong,
                        "equal elements come before each other in this order: the sort runs past its ends",
                        "compare with < or >",
                    )


def _or_equal(comparator: Node) -> Node | None:
    """The comparison with <= or >=, where it is all that is returned."""
    if comparator.kind == "call_expression" and "_equal<" in comparator.text and "std::" in comparator.text:
        return comparator
    if comparator.kind != "lambda_expression":
        return None
    for statement in comparator.find("return_statement"):
        value = statement.children[0] if statement.children else None
        if value is not None and value.kind == "binary_expression" and value.operator in ("<=", ">="):
            return value
    return None
