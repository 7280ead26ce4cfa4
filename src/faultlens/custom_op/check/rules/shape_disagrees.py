from __future__ import annotations

from collections.abc import Iterator

from faultlens.custom_op.check.checked import facts, rank_known
from faultlens.custom_op.check.extents import related
from faultlens.custom_op.check.interpret.events import Event, Place
from faultlens.custom_op.check.interpret.symbols import CONTEXT, UNKNOWN, Symbol, minus, parts
from faultlens.custom_op.check.interpret.unit import Followed, Unit
from faultlens.custom_op.check.rule import Rule
from faultlens.custom_op.check.syntax.registered import Op
from faultlens.custom_op.check.syntax.syntax import Node
from faultlens.custom_op.check.wording import tensor_named
from faultlens.records.op_finding import OpFinding

_KNOWN = ("int", "attr", "dim", "input", "elem", "+", "-", "*")


class ShapeDisagrees(Rule):
    """A graph is built with what the shape function says; `Compute` allocates what it allocates. Where the two differ,
    layers are built for sizes that never come, gradients fail, and code that trusts the static shape (XLA, `tf.data`,
    memory planning) reads beyond the end."""

    code = "OP125"
    slug = "shape-disagrees"
    severity = "warning"
    headline = "the shape function says something else than Compute allocates"

    def look(self, followed: Followed) -> Iterator[OpFinding]:
        op = followed.op
        if op is None or op.shape_function is None:
            return
        said = _said(op, followed.unit)
        for event in followed.of("output"):
            if len(event.by) < 2 or not isinstance(event.on[1], int) or event.on[1] not in said:
                continue
            (claimed, where), made = said[event.on[1]], event.by[1]
            if not _differ(claimed, made, event.place) and not _never_scalar(claimed, made, event):
                continue
            if claimed[0] == made[0] == "shape" and related(event.place, [claimed[1]], [made[1]]):
                continue
            gets, says = _words(made, op), _words(claimed, op)
            yield self.found(
                where,
                f"{tensor_named(event.on, op)} gets {gets}, and the shape function says {says}",
                "let both say the same",
                followed=followed,
                related=[("what is allocated", event.node)],
            )
            return


def _said(op: Op, unit: Unit) -> dict[int, tuple[Symbol, Node]]:
    """What a shape function says of each output, and where, if it says one thing on all paths."""
    node = op.shape_function
    if node is None:
        return {}
    if node.text.endswith("UnchangedShape"):
        return {0: (("shape", ("input", 0)), node)}
    if node.text.endswith("ScalarShape"):
        return {0: (("mkshape",), node)}
    found: dict[int, dict[Symbol, Node]] = {}
    for event in unit.shape_events(node, op):
        if event.name == "set_output" and len(event.by) > 1 and isinstance(event.on[1], int):
            found.setdefault(event.on[1], {})[_shape(event.by[1])] = event.node
    return {output: next(iter(shapes.items())) for output, shapes in found.items() if len(shapes) == 1}


def _shape(symbol: Symbol) -> Symbol:
    """The handle of a shape, in the words of Compute."""
    if symbol[0] == "input":
        return ("shape", symbol)
    if symbol[0] != "call":
        return UNKNOWN
    given = _given(symbol)
    if symbol[1] in ("WithRank", "WithRankAtLeast", "WithRankAtMost") and given:
        return _shape(given[0])
    if symbol[1] == "Scalar":
        return ("mkshape",)
    if symbol[1] in ("Vector", "Matrix"):
        return ("mkshape", *map(_dim, given))
    if symbol[1] == "MakeShape" and given and given[0][0] == "braces":
        return ("mkshape", *map(_dim, given[0][1:]))
    return UNKNOWN


def _given(call: Symbol) -> tuple[Symbol, ...]:
    """Arguments, without the context whose method it is."""
    return call[3:] if len(call) > 2 and call[2] == CONTEXT else call[2:]


def _dim(symbol: Symbol) -> Symbol:
    if symbol[0] in ("int", "attr") or (symbol[0] == "elem" and symbol[1][0] == "attr"):
        return symbol
    if symbol[0] in ("+", "-", "*") and len(symbol) == 3:
        return (symbol[0], _dim(symbol[1]), _dim(symbol[2]))
    given = _given(symbol) if symbol[0] == "call" else ()
    if symbol[0] == "call" and symbol[1] == "Dim" and len(given) == 2 and given[1][0] == "int" and given[1][1] >= 0:
        shape = _shape(given[0])
        return ("dim", shape[1], given[1]) if shape[0] == "shape" else UNKNOWN
    if symbol[0] == "call" and symbol[1] in ("MakeDim", "Value", "WithValue") and given:
        return _dim(given[0])
    sign = {"Add": "+", "Subtract": "-", "Multiply": "*"}.get(str(symbol[1])) if symbol[0] == "call" else None
    return (sign, _dim(given[0]), _dim(given[1])) if sign and len(given) >= 2 else UNKNOWN


def _differ(claimed: Symbol, made: Symbol, place: Place) -> bool:
    if claimed[0] == made[0] == "shape":
        return bool(claimed[1] != made[1] and made[1][0] == "input")
    if claimed[0] == made[0] == "mkshape":
        return len(claimed) != len(made) or any(
            _other_size(*pair, place) for pair in zip(claimed[1:], made[1:], strict=True)
        )
    if claimed[0] == "shape" and made[0] == "mkshape":
        return not _made_of(made, claimed[1])
    return False


def _never_scalar(claimed: Symbol, made: Symbol, event: Event) -> bool:
    """A scalar is promised, and the output gets the shape of an input whose rank nobody limits."""
    return claimed == ("mkshape",) and made[0] == "shape" and not rank_known(event.place, made[1])


def _other_size(claimed: Symbol, made: Symbol, place: Place) -> bool:
    """k against k + 1, dimension 0 against dimension 1 of the same input."""
    if UNKNOWN in parts(claimed) or not all(part[0] in _KNOWN for part in (*parts(claimed), *parts(made))):
        return False
    apart = minus(claimed, made)
    if set(apart) == {()}:
        return True
    same_owner = claimed[0] == made[0] in ("dim", "elem") and claimed[1] == made[1]
    if not same_owner or claimed[2] == made[2] or not claimed[2][0] == made[2][0] == "int":
        return False
    return not any(parts(fact.condition) >= {claimed, made} for fact in facts(place))  # they may have to be equal


def _made_of(shape: Symbol, tensor: Symbol) -> bool:
    """TensorShape({x.dim_size(0), x.dim_size(1)}) is the shape of x where x is a matrix."""
    return len(shape) > 1 and all(
        dim == ("dim", tensor, ("int", at)) or dim == ("numel", tensor) for at, dim in enumerate(shape[1:])
    )


def _words(shape: Symbol, op: Op) -> str:
    if shape[0] == "shape":
        return f"the shape of {tensor_named(shape[1], op)}"
    dims = ", ".join(_size(dim, op) for dim in shape[1:])
    return "a scalar" if len(shape) == 1 else f"[{dims}]"


def _size(dim: Symbol, op: Op) -> str:
    if dim[0] == "int":
        return str(dim[1])
    if dim[0] == "attr":
        return f"`{dim[1]}`"
    if dim[0] == "elem" and dim[1][0] == "attr" and dim[2][0] == "int":
        return f"`{dim[1][1]}[{dim[2][1]}]`"
    if dim[0] in ("+", "-", "*"):
        return f"{_size(dim[1], op)} {dim[0]} {_size(dim[2], op)}"
    if dim[0] == "dim" and dim[1][0] == "input" and dim[2][0] == "int":
        return f"dimension {dim[2][1]} of {tensor_named(dim[1], op)}"
    return "?"
