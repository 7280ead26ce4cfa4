from __future__ import annotations

import re
from collections.abc import Iterator

from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.functions import Class
from faultlens.custom_op.check.syntax.syntax import Node, name_of
from faultlens.records.op_finding import OpFinding


class CopiedOwner(Rule):
    """A class whose destructor frees a pointer, and that can be copied: the copy has the same pointer, and both free
    it. Passing it by value, returning it, or putting it into a container makes such copies without a word.

    ```cpp
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ```

    or, better, a member that owns: `std::unique_ptr<float[]>`, `std::vector<float>`."""

    code = "OP135"
    slug = "copied-owner"
    severity = "error"
    headline = "an object that frees memory in its destructor is copied"

    def examine(self, unit: Unit) -> Iterator[OpFinding]:
        for class_ in unit.classes.values():
            destructor = class_.function(f"~{class_.name}")
            if destructor is None or not _frees(class_, destructor.body.text) or _copies_well(class_):
                continue
            for where in _copies(class_, unit):
                yield self.found(
                    where,
                    f"this copies a `{class_.name}`: the original and the copy free the same memory",
                    "pass it by reference, and forbid copies",
                    f"{class_.name}(const {class_.name}&) = delete;",
                    op=class_.name,
                    related=[("freed here", destructor.node)],
                )


def _frees(class_: Class, body: str) -> bool:
    return any(
        "*" in member.type and re.search(rf"(?:delete(?:\s*\[\])?\s*|free\s*\(\s*){re.escape(member.name)}\b", body)
        for member in class_.members.values()
    )


def _copies_well(class_: Class) -> bool:
    name = re.escape(class_.name)
    return bool(
        re.search(rf"\b{name}\s*\(\s*(?:const\s+)?{name}\s*&&?|operator\s*=\s*\(|DISALLOW_COPY", class_.node.text)
    )


def _copies(class_: Class, unit: Unit) -> Iterator[Node]:
    """Parameters by value, and variables made of another."""
    for function in unit.functions:
        if not any(function.node.source is each for each in unit.sources):
            continue
        for node in function.node.find("parameter_declaration"):
            kind, declarator = node.get("type"), node.get("declarator")
            if name_of(kind) == class_.name and declarator is not None and declarator.kind == "identifier":
                yield node
        for node in function.body.find("declaration"):
            if name_of(node.get("type")) == class_.name:
                for declarator in node.all("declarator"):
                    value = declarator.get("value")
                    if (
                        value is not None
                        and value.kind == "identifier"
                        and declarator.all("declarator")[0].kind == "identifier"
                    ):
                        yield node
