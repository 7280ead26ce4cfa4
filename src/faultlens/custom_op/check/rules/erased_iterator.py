from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.interpret.loops import leaves
from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.syntax import Node, arguments, name_of
from faultlens.records.op_finding import OpFinding


class ErasedIterator(Rule):
    """An element that is erased takes its iterator with it: `++it` afterwards, or the next round of `for (x : c)`,
    follows a pointer into memory that was freed. `erase` gives the iterator of the next element:

    ```cpp
    for (auto it = counts.begin(); it != counts.end();) {
      if (it->second < least) it = counts.erase(it);
      else ++it;
    }
    ```
    """

    code = "OP138"
    slug = "erased-iterator"
    severity = "error"
    headline = "an element is erased while its container is walked through"

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        for source in unit.sources:
            for loop in source.root.find("for_statement", "for_range_loop"):
                yield from self._loop(loop)

    def _loop(self, loop: Node) -> Iterator[OpFinding]:
        update, walked, body = loop.get("update"), loop.get("right"), loop.get("body")
        moved = update.get("argument") if update is not None and update.kind == "update_expression" else None
        for call in body.find("call_expression") if body is not None else ():
            function = call.get("function")
            owner = function.get("argument") if function is not None and function.kind == "field_expression" else None
            if owner is None or name_of(function) != "erase" or leaves(call) or _result_is_used(call):
                continue
            given = [each.text for each in arguments(call)]
            if (moved is not None and given == [moved.text]) or (walked is not None and owner.text == walked.text):
                yield self.found(
                    call,
                    f"`{owner.text}` loses the element that the loop stands at: its next step follows freed memory",
                    "go on from where `erase` says",
                    f"it = {owner.text}.erase(it);",
                )


def _result_is_used(call: Node) -> bool:
    return call.parent is not None and call.parent.kind != "expression_statement"
