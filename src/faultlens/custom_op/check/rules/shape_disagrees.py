from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts, rank_known
from faultlens.custom_op.check.extents import related
from faultlens.custom_op.check.interpret.buffer_symbols import Dim, Element, Input, NumElements, Output, Shape, ShapeOf
from faultlens.custom_op.check.interpret.call_symbols import Braces, Result
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.events import Event, ProgramPoint
from faultlens.custom_op.check.interpret.linear import minus
from faultlens.custom_op.check.interpret.symbols import CONTEXT, ONE, UNKNOWN, Attr, Binary, Int, Symbol, is_binary
from faultlens.custom_op.check.interpret.unit import FunctionSummary, Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.wording import tensor_named
from faultlens.records.op_finding import OpFinding

_KNOWN = (Int, Attr, Dim, Input, Element)
SCALAR = ShapeOf(())


class ShapeDisagrees(Rule):
    """A graph is built with what the shape function says; `Compute` allocates what it allocates. Where the two differ,
    layers are built for sizes that never come, gradients fail, and code that trusts the static shape (XLA, `tf.data`,
    memory planning) reads beyond the end."""

    code = "OP125"
    slug = "shape-disagrees"
    severity = "warning"
    headline = "the shape function says something else than Compute allocates"

    def look(self, summary: FunctionSummary) -> Iterator[OpFinding]:
        op = summary.op
        if op is None or op.shape_function is None:
            return
        said = _said(op, summary.unit)
        for event in summary.of("output"):
            index = event.on.index if isinstance(event.on, Output) else None
            if len(event.by) < 2 or not isinstance(index, int) or index not in said:
                continue
            (claimed, where), made = said[index], event.by[1]
            if not _differ(claimed, made, event.point) and not _never_scalar(claimed, made, event):
                continue
            if (
                isinstance(claimed, Shape)
                and isinstance(made, Shape)
                and related(event.point, [claimed.subject], [made.subject])
            ):
                continue
            gets, says = _words(made, op), _words(claimed, op)
            yield self.found(
                where,
                f"{tensor_named(event.on, op)} gets {gets}, and the shape function says {says}",
                "let both say the same",
                summary=summary,
                related=[("what is allocated", event.node)],
            )
            return


def _said(op: Op, unit: Unit) -> dict[int, tuple[Symbol, Node]]:
    """What a shape function says of each output, and where, if it says one thing on all paths."""
    node = op.shape_function
    if node is None:
        return {}
    if node.text.endswith("UnchangedShape"):
        return {0: (Shape(Input(0)), node)}
    if node.text.endswith("ScalarShape"):
        return {0: (SCALAR, node)}
    found: dict[int, dict[Symbol, Node]] = {}
    for event in unit.shape_events(node, op):
        index = event.on.index if isinstance(event.on, Output) else None
        if event.name == "set_output" and len(event.by) > 1 and isinstance(index, int):
            found.setdefault(index, {})[_shape(event.by[1])] = event.node
    return {output: next(iter(shapes.items())) for output, shapes in found.items() if len(shapes) == 1}


def _shape(symbol: Symbol) -> Symbol:
    """The handle of a shape, in the words of Compute."""
    if isinstance(symbol, Input):
        return Shape(symbol)
    if not isinstance(symbol, Result):
        return UNKNOWN
    match symbol.function, _given(symbol):
        case "WithRank" | "WithRankAtLeast" | "WithRankAtMost", (shape, *_):
            return _shape(shape)
        case "Scalar", _:
            return SCALAR
        case "Vector" | "Matrix", dims:
            return ShapeOf(tuple(map(_dim, dims)))
        case "MakeShape", (Braces(values), *_):
            return ShapeOf(tuple(map(_dim, values)))
    return UNKNOWN


def _given(call: Result) -> tuple[Symbol, ...]:
    """Arguments, without the context whose method it is."""
    return call.arguments[1:] if call.arguments[:1] == (CONTEXT,) else call.arguments


def _dim(symbol: Symbol) -> Symbol:
    match symbol:
        case Int() | Attr() | Element(Attr()):
            return symbol
        case Binary("+" | "-" | "*" as sign, left, right):
            return Binary(sign, _dim(left), _dim(right))
        case Result():
            return _computed_dim(symbol.function, _given(symbol))
    return UNKNOWN


def _computed_dim(function: str, given: tuple[Symbol, ...]) -> Symbol:
    match function, given:
        case "Dim", (handle, Int(axis)) if axis >= 0:
            shape = _shape(handle)
            return Dim(shape.subject, Int(axis)) if isinstance(shape, Shape) else UNKNOWN
        case "MakeDim" | "Value" | "WithValue", (value, *_):
            return _dim(value)
        case "Add" | "Subtract" | "Multiply", (left, right, *_):
            return Binary({"Add": "+", "Subtract": "-", "Multiply": "*"}[function], _dim(left), _dim(right))
    return UNKNOWN


def _differ(claimed: Symbol, made: Symbol, point: ProgramPoint) -> bool:
    match claimed, made:
        case Shape(tensor), Shape(other):
            return tensor != other and isinstance(other, Input)
        case ShapeOf(said), ShapeOf(dims):
            return len(said) != len(dims) or any(_other_size(*pair, point) for pair in zip(said, dims, strict=True))
        case Shape(tensor), ShapeOf(dims):
            return not _made_of(dims, tensor)
    return False


def _never_scalar(claimed: Symbol, made: Symbol, event: Event) -> bool:
    """A scalar is promised, and the output gets the shape of an input whose rank nobody limits."""
    return claimed == SCALAR and isinstance(made, Shape) and not rank_known(event.point, made.subject)


def _other_size(claimed: Symbol, made: Symbol, point: ProgramPoint) -> bool:
    """k against k + 1, dimension 0 against dimension 1 of the same input."""
    if not all(_is_known(part) for part in (*parts(claimed), *parts(made))):
        return False
    if set(minus(claimed, made)) == {ONE}:
        return True
    match claimed, made:
        case (Dim(owner, Int(one)), Dim(other, Int(two))) | (Element(owner, Int(one)), Element(other, Int(two))):
            if owner == other and one != two:
                return not any(parts(fact.condition) >= {claimed, made} for fact in facts(point))  # they may be equal
    return False


def _is_known(part: Symbol) -> bool:
    return isinstance(part, _KNOWN) or is_binary(part, "+", "-", "*")


def _made_of(dims: tuple[Symbol, ...], tensor: Symbol) -> bool:
    """TensorShape({x.dim_size(0), x.dim_size(1)}) is the shape of x where x is a matrix."""
    return bool(dims) and all(dim == Dim(tensor, Int(at)) or dim == NumElements(tensor) for at, dim in enumerate(dims))


def _words(shape: Symbol, op: Op) -> str:
    match shape:
        case Shape(tensor):
            return f"the shape of {tensor_named(tensor, op)}"
        case ShapeOf(dims) if dims:
            return f"[{', '.join(_size(dim, op) for dim in dims)}]"
    return "a scalar"


def _size(dim: Symbol, op: Op) -> str:
    match dim:
        case Int(value):
            return str(value)
        case Attr(name):
            return f"`{name}`"
        case Element(Attr(name), Int(at)):
            return f"`{name}[{at}]`"
        case Binary("+" | "-" | "*" as sign, left, right):
            return f"{_size(left, op)} {sign} {_size(right, op)}"
        case Dim(Input() as tensor, Int(axis)):
            return f"dimension {axis} of {tensor_named(tensor, op)}"
    return "?"
