"""Which functions and classes a source defines, with their parameters, members and bodies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from faultlens.custom_op.check.syntax.syntax import Node, name_of


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str

    @property
    def by_reference(self) -> bool:
        return "&" in self.type or "*" in self.type


@dataclass(frozen=True)
class Member:
    name: str
    type: str
    node: Node
    value: Node | None = None


@dataclass(eq=False)
class Function:
    name: str
    node: Node
    body: Node
    parameters: tuple[Parameter, ...]
    returns: str  # its type; "" of constructors
    of_class: str = ""
    initial: tuple[tuple[str, Node], ...] = ()  # of a constructor: member(value)

    @property
    def is_status(self) -> bool:
        return bool(re.search(r"\bStatus\b", self.returns))

    @property
    def full_name(self) -> str:
        return f"{self.of_class}::{self.name}" if self.of_class else self.name

    def parameter(self, type_: str) -> str | None:
        """The name of the one of this type."""
        return next((each.name for each in self.parameters if re.search(rf"\b{type_}\b", each.type)), None)


@dataclass(eq=False)
class Class:
    name: str
    node: Node
    bases: tuple[str, ...]
    types: tuple[str, ...]  # names of template parameters
    members: dict[str, Member] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)

    def function(self, name: str) -> Function | None:
        return next((each for each in self.functions if each.name == name), None)

    @property
    def constructor(self) -> Function | None:
        own = [each for each in self.functions if each.name == self.name]
        return next((each for each in own if each.parameter("OpKernelConstruction")), own[0] if own else None)


def classes_in(root: Node) -> Iterator[Class]:
    for node in root.find("class_specifier", "struct_specifier"):
        body = node.get("body")
        name = name_of(node.get("name"))
        if body is None or not name:
            continue
        clause = node.first("base_class_clause")
        bases = tuple(name_of(child) for child in clause.children if name_of(child)) if clause else ()
        made = Class(name, node, bases, _template_parameters(node))
        for child in _members(body):
            _add_member(made, child)
        yield made


def functions_in(root: Node) -> Iterator[Function]:
    """All that have a body, those in classes too."""
    for node in root.find("function_definition"):
        declarator, body = _function_declarator(node), node.get("body")
        if declarator is None or body is None or body.kind not in ("compound_statement", "try_statement"):
            continue
        name, scope = _name_and_scope(declarator)
        of_class = scope or _enclosing_class(node)
        parameters = parameters_of(declarator)
        returns = node.get("type")
        yield Function(
            name=name,
            node=node,
            body=body,
            parameters=parameters,
            returns=_with_pointer(returns.text, node.get("declarator")) if returns else "",
            of_class=of_class,
            initial=tuple(_initial(node)),
        )


def parameters_of(declarator: Node) -> tuple[Parameter, ...]:
    listed = declarator.get("parameters")
    found = []
    for child in listed.children if listed else ():
        if child.kind in ("parameter_declaration", "optional_parameter_declaration"):
            inner = child.get("declarator")
            name = name_of(inner)
            text = child.text
            if inner is not None and name:  # the whole text but the name: `const float* x` is "const float*"
                head = child.source.data[child.start : inner.start].decode("utf-8", "replace")
                text = head + re.sub(rf"\b{re.escape(name)}\b.*", "", inner.text, flags=re.DOTALL)
                text += "*" if inner.kind == "array_declarator" else ""
            found.append(Parameter(name, " ".join(text.split())))
    return tuple(found)


def declared_type(node: Node, declarator: Node) -> str:
    """`const float *p` as "const float*"."""
    kind = node.get("type")
    words = [child.text for child in node.children if child.kind in ("type_qualifier", "storage_class_specifier")]
    return _with_pointer(" ".join([*words, kind.text if kind else ""]), declarator)


def _with_pointer(text: str, declarator: Node | None) -> str:
    marks = ""
    while declarator is not None and declarator.kind in (
        "pointer_declarator", "reference_declarator", "init_declarator", "array_declarator"
    ):  # fmt: skip
        if declarator.kind == "pointer_declarator":
            marks += "*"
        elif declarator.kind == "reference_declarator":
            marks += "&"
        inner = declarator.get("declarator")
        declarator = inner or next((each for each in declarator.children if each.kind.endswith("declarator")), None)
    return " ".join(text.split()) + marks


def _function_declarator(node: Node) -> Node | None:
    declarator = node.get("declarator")
    while declarator is not None and declarator.kind != "function_declarator":
        inner = declarator.get("declarator")
        declarator = inner or next((each for each in declarator.children if each.kind.endswith("declarator")), None)
    return declarator


def _name_and_scope(declarator: Node) -> tuple[str, str]:
    inner = declarator.get("declarator")
    scope = ""
    while inner is not None and inner.kind == "qualified_identifier":
        scope = name_of(inner.get("scope")) or scope
        inner = inner.get("name")
    return name_of(inner), scope


def _enclosing_class(node: Node) -> str:
    found = next((each for each in node.above() if each.kind in ("class_specifier", "struct_specifier")), None)
    return name_of(found.get("name")) if found else ""


def _template_parameters(node: Node) -> tuple[str, ...]:
    above = node.parent
    listed = above.get("parameters") if above is not None and above.kind == "template_declaration" else None
    return tuple(_parameter_name(child) for child in listed.children if child.kind != "comment") if listed else ()


def _parameter_name(node: Node) -> str:
    names = [each.text for each in node.walk() if each.kind in ("type_identifier", "identifier")]
    return names[-1] if names and node.kind == "parameter_declaration" else names[0] if names else ""


def _members(body: Node) -> Iterator[Node]:
    """Also those between #if and #endif."""
    for child in body.children:
        if child.kind.startswith("preproc_if") or child.kind in ("preproc_else", "preproc_elif"):
            yield from _members(child)
        else:
            yield child


def _add_member(made: Class, node: Node) -> None:
    if node.kind == "field_declaration":
        value = node.get("default_value")
        for declarator in node.all("declarator"):
            if declarator.kind != "function_declarator":
                kind = declared_type(node, declarator)
                kind += "[]" if declarator.kind == "array_declarator" else ""
                made.members[name_of(declarator)] = Member(name_of(declarator), kind, declarator, value)


def _initial(node: Node) -> Iterator[tuple[str, Node]]:
    listed = node.first("field_initializer_list")
    for each in listed.children if listed else ():
        value = each.first("argument_list", "initializer_list")
        if value is not None:
            yield name_of(each.children[0]), value
