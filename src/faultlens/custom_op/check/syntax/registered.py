"""Which ops and kernels a source registers: names, inputs, outputs, attributes, types and the classes behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from faultlens.custom_op.check.syntax.syntax import Node, arguments, name_of, string_of, template_arguments
from faultlens.custom_op.check.syntax.types import of_attribute, tidy

_ATTR = re.compile(r"^\s*(\w+)\s*:\s*(.*?)\s*$", re.DOTALL)


@dataclass(frozen=True)
class Argument:
    """An input or output: `x: T`, `xs: N * float`, `r: resource`."""

    name: str
    type: str  # of TensorFlow ("float"), or the name of an attribute ("T")
    many: bool = False


@dataclass(frozen=True)
class Attribute:
    name: str
    kind: str  # "type", "int", "list(int)"
    types: frozenset[str] | None = None  # C++ types that a type attribute allows; None: any
    least: int | None = None
    choices: tuple[str, ...] = ()


@dataclass
class Op:
    name: str
    node: Node
    inputs: list[Argument] = field(default_factory=list)
    outputs: list[Argument] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    shape_function: Node | None = None

    @property
    def fixed_outputs(self) -> bool:
        """Whether their number is known."""
        return not any(output.many for output in self.outputs)

    def input_number(self, name: str) -> int | None:
        return _number(self.inputs, name)

    def output_number(self, name: str) -> int | None:
        return _number(self.outputs, name)

    def types_of(self, argument: Argument) -> frozenset[str] | None:
        """C++ types that an argument can have; None: any."""
        attribute = self.attributes.get(argument.type)
        return attribute.types if attribute else of_attribute("{" + argument.type + "}")


@dataclass(frozen=True)
class Kernel:
    """One registration of a class for an op."""

    op: str
    device: str
    class_name: str
    class_types: tuple[str, ...]  # template arguments
    constraints: tuple[tuple[str, str], ...]  # attribute -> C++ type
    node: Node

    def type_of(self, attribute: str) -> str | None:
        return dict(self.constraints).get(attribute)


def ops_in(root: Node) -> Iterator[Op]:
    for call in root.find("call_expression"):
        if call.parent is not None and call.parent.kind == "field_expression":
            continue  # a part of a longer chain
        chain = _chain(call)
        if chain[0][0] == "REGISTER_OP" and (op := _op(chain)):
            yield op


def kernels_in(root: Node) -> Iterator[Kernel]:
    for call in root.find("call_expression"):
        if name_of(call.get("function")) == "REGISTER_KERNEL_BUILDER":
            yield from _kernel(call)


def _number(arguments_: list[Argument], name: str) -> int | None:
    """Where it stands; not known behind lists."""
    for number, argument in enumerate(arguments_):
        if argument.name == name:
            return number
        if argument.many:
            return None
    return None


def _chain(node: Node | None) -> list[tuple[str, Node]]:
    """`A("x").B("y")` as [("A", call), ("B", call)]."""
    calls: list[tuple[str, Node]] = []
    while node is not None and node.kind == "call_expression":
        function = node.get("function")
        calls.append((name_of(function), node))
        node = function.get("argument") if function and function.kind == "field_expression" else None
    return calls[::-1]


def _op(chain: list[tuple[str, Node]]) -> Op | None:
    named = arguments(chain[0][1])
    name = string_of(named[0]) if named else None
    if name is None:
        return None
    op = Op(name, chain[-1][1])
    for called, call in chain[1:]:
        given = arguments(call)
        text = string_of(given[0]) if given else None
        if called == "SetShapeFn" and given:
            op.shape_function = given[0]
        elif called in ("Input", "Output") and text is not None and (found := _ATTR.match(text)):
            (op.inputs if called == "Input" else op.outputs).append(_argument(found[1], found[2]))
        elif called == "Attr" and text is not None and (found := _ATTR.match(text)):
            op.attributes[found[1]] = _attribute(found[1], found[2])
    for called, call in chain[1:]:  # `xs: N * float`: TensorFlow sees to it that N is at least 1
        given = arguments(call)
        text = string_of(given[0]) if given and called in ("Input", "Output") else None
        counted = re.search(r":\s*(\w+)\s*\*", text or "")
        number = op.attributes.get(counted[1]) if counted else None
        if number is not None and number.least is None:
            op.attributes[number.name] = replace(number, least=1)
    for argument in (*op.inputs, *op.outputs):  # `xs: TL` with TL: list(type)
        attribute = op.attributes.get(argument.type)
        if attribute and attribute.kind == "list(type)":
            for side in (op.inputs, op.outputs):
                side[:] = [Argument(each.name, each.type, True) if each == argument else each for each in side]
    return op


def _argument(name: str, text: str) -> Argument:
    text = text.removeprefix("Ref(").removesuffix(")") if text.startswith("Ref(") else text
    count, star, kind = text.rpartition("*")
    return Argument(name, kind.strip(), bool(star and count))


def _attribute(name: str, text: str) -> Attribute:
    body = text.partition("=")[0] if ">=" not in text else text
    least = re.search(r">=\s*(-?\d+)", text)
    kind = re.split(r"[\s=>]", text.strip(), maxsplit=1)[0]
    if text.lstrip().startswith("{"):
        if "'" in text or '"' in text:
            return Attribute(name, "string", choices=tuple(re.findall(r"['\"]([^'\"]*)['\"]", body)))
        return Attribute(name, "type", types=of_attribute(body))
    if kind in ("numbertype", "realnumbertype", "quantizedtype"):
        return Attribute(name, "type", types=of_attribute(kind))
    if text.lstrip().startswith("list({"):
        return Attribute(name, "list(type)")
    return Attribute(name, kind, least=int(least[1]) if least else None)


def _kernel(call: Node) -> Iterator[Kernel]:
    given = arguments(call)
    if len(given) < 2:
        return
    chain = _chain(given[0])
    first = arguments(chain[0][1]) if chain else []
    op = string_of(first[0]) if first else None
    if op is None:
        return
    constraints = []
    device = ""
    for called, part in chain[1:]:
        if called == "Device" and arguments(part):
            device = arguments(part)[0].text
        elif called == "TypeConstraint" and arguments(part):
            types = template_arguments(_field(part))
            values = arguments(part)
            text = string_of(values[0])
            if text is not None and types:
                constraints.append((text, tidy(types[0])))
            elif text is not None and len(values) > 1:
                constraints.append((text, tidy(values[1].text)))
    written = given[1]  # `AOp<Device, float>` may have been cut at its comma
    text = call.source.data[written.start : given[-1].end].decode("utf-8", "replace")
    name, _, rest = text.partition("<")
    types_ = tuple(tidy(part) for part in _split(rest.rpartition(">")[0])) if rest else ()
    yield Kernel(op, device, name.strip().rpartition("::")[2], types_, tuple(constraints), call)


def _field(call: Node) -> Node | None:
    function = call.get("function")
    return function.get("field") if function is not None else None


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "<({") - (sign in ">)}")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]
