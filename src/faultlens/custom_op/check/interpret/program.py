"""What the sources that belong together declare: ops, kernels, classes, functions, and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from faultlens.custom_op.check.syntax.functions import Class, Function, classes_in, declared_type, functions_in
from faultlens.custom_op.check.syntax.registered import Kernel, Op, kernels_in, ops_in
from faultlens.custom_op.check.syntax.syntax import Node, Source, name_of, snippet


@dataclass
class Program:
    sources: list[Source]
    headers: list[Source] = field(default_factory=list)  # known, but not judged
    elsewhere: dict[str, Op] = field(default_factory=dict)  # ops that other sources register

    @cached_property
    def ops(self) -> dict[str, Op]:
        return {op.name: op for source in self.files for op in ops_in(source.root)}

    @cached_property
    def kernels(self) -> list[Kernel]:
        return [kernel for source in self.files for kernel in kernels_in(source.root)]

    @cached_property
    def classes(self) -> dict[str, Class]:
        found = {each.name: each for source in reversed(self.files) for each in classes_in(source.root)}
        for function in self.functions:
            if function.of_class in found:
                found[function.of_class].functions.append(function)
        return found

    @cached_property
    def functions(self) -> list[Function]:
        return [function for source in self.files for function in functions_in(source.root)]

    @cached_property
    def function_names(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for function in self.functions:
            if not function.of_class:
                found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def enums(self) -> list[frozenset[str]]:
        """The names of the values of each."""
        found = [node for source in self.files for node in source.root.find("enum_specifier")]
        names = [frozenset(name_of(each.get("name")) for each in node.find("enumerator")) for node in found]
        return [each for each in names if each]

    @cached_property
    def globals(self) -> dict[str, str]:
        """Variables outside of functions that can be changed, and their types."""
        return dict(pair for source in self.files for pair in _globals(source.root))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names of types: using Row = std::vector<float>, typedef std::vector<float> Row."""
        return dict(pair for source in self.files for pair in _aliases(source.root))

    @property
    def files(self) -> list[Source]:
        return [*self.sources, *self.headers]

    def constant_expressions(self) -> Iterable[tuple[str, Node]]:
        """Names of constants and what they are set to, in the order of the sources."""
        return (pair for source in self.files for pair in _constants(source.root))

    def judges(self, node: Node) -> bool:
        """Whether it stands in a source, not in a header."""
        return any(node.source is source for source in self.sources)

    # ------------------------------------------------------------------------------------------- lookup

    def op(self, name: str) -> Op | None:
        return self.ops.get(name) or self.elsewhere.get(name)

    def class_(self, name: str) -> Class | None:
        return self.classes.get(name)

    def method(self, class_name: str, name: str, arguments: int | None = None) -> Function | None:
        """A function of the class or of a base; None where several could be meant."""
        class_ = self.classes.get(class_name)
        seen = set()
        while class_ is not None and class_.name not in seen:
            named = [each for each in class_.functions if each.name == name]
            fitting = [each for each in named if arguments is None or len(each.parameters) == arguments] or named
            if named:
                return fitting[0] if len(fitting) == 1 or arguments is None else None
            seen.add(class_.name)
            class_ = next((self.classes[base] for base in class_.bases if base in self.classes), None)
        return None

    def function(self, name: str, arguments: int | None = None) -> Function | None:
        """A free function; None where several could be meant."""
        fitting = [
            each for each in self.function_names.get(name, []) if arguments is None or len(each.parameters) >= arguments
        ]
        fitting = [each for each in fitting if len(each.parameters) == arguments] or fitting
        return fitting[0] if len(fitting) == 1 else None


def _constants(root: Node) -> Iterable[tuple[str, Node]]:
    for node in root.find("declaration", "field_declaration"):
        if "const" in node.text[:40] and _outside(node):
            for declarator in node.all("declarator"):
                value = declarator.get("value") if declarator.kind == "init_declarator" else node.get("default_value")
                if value is not None and value.kind not in ("argument_list", "initializer_list", "lambda_expression"):
                    yield name_of(declarator), value
    for node in root.find("preproc_def"):
        value, name = node.get("value"), node.get("name")
        if value is not None and name is not None and re.fullmatch(r"[\s()\d]+", value.text):
            yield name.text, next(snippet(f"{value.text};").find("number_literal"), value)


def _outside(node: Node) -> bool:
    """Of functions; constants of classes too."""
    return all(each.kind not in ("compound_statement",) for each in node.above())


def _globals(root: Node) -> Iterable[tuple[str, str]]:
    for node in root.find("declaration"):
        if not _outside(node) or any(each.kind in ("class_specifier", "struct_specifier") for each in node.above()):
            continue
        for declarator in node.all("declarator"):
            kind = declared_type(node, declarator)
            if declarator.kind == "function_declarator" or re.search(r"\bconst(?:expr)?\b(?!.*\*)", kind):
                continue
            if name_of(declarator):
                yield name_of(declarator), kind


def _aliases(root: Node) -> Iterable[tuple[str, str]]:
    for node in root.find("alias_declaration"):
        if (name := node.get("name")) is not None and (type_ := node.get("type")) is not None:
            yield name.text, type_.text
    for node in root.find("type_definition"):
        for declarator in node.all("declarator"):
            yield name_of(declarator), declared_type(node, declarator)
