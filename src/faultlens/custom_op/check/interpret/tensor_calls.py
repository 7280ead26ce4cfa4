"""What the methods of Tensor, TensorShape and Eigen's views stand for."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import (
    ByteSize,
    Dim,
    DType,
    NumElements,
    Pointer,
    Property,
    Rank,
    Shape,
    ShapeOf,
    View,
    ViewDim,
)
from faultlens.custom_op.check.interpret.call_symbols import Result, Status, Survived
from faultlens.custom_op.check.interpret.composition import parts
from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.linear import constant, product
from faultlens.custom_op.check.interpret.places import mark_written
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import ONE, UNKNOWN, ZERO, Binary, Symbol, number
from faultlens.custom_op.check.interpret.walk import Walker

RANKS = {"vec": 1, "matrix": 2, "scalar": 0}


def _about(kind: type[Property]) -> Handler:
    return lambda _, this, __: kind(this.on)


def _dim(walker: Walker, this: Call, state: State) -> Symbol:
    tensor, at = this.on, this.value(walker, state, 0)
    if isinstance(tensor, ShapeOf):
        known = constant(at)
        return tensor.dims[known] if known is not None and 0 <= known < len(tensor.dims) else UNKNOWN
    tensor = _shaped(tensor)
    walker.note("dim", this.node, state, on=tensor, by=(at,))
    least = ZERO if Rank(tensor) in parts(at) else at  # x.dim_size(x.dims() - 1)
    state.assume(Survived(Binary(">", Rank(tensor), least)), True)
    state.feasible = True
    return Dim(tensor, at)


def _view(walker: Walker, this: Call, state: State) -> Symbol:
    tensor = this.on
    values = this.values(walker, state)
    type_ = this.types[0] if this.types else ""
    rank: int | None = RANKS.get(this.name)
    if this.name == "tensor" and len(this.types) > 1:
        rank = int(this.types[1]) if this.types[1].isdigit() else None
    walker.note(
        "view",
        this.node,
        state,
        on=tensor,
        by=(number(-1 if rank is None else rank), *values),
        name=this.name,
        detail=type_,
    )
    if rank is not None:  # whoever is behind it was alive after the CHECK
        asked = Binary("==", NumElements(tensor), ONE) if rank == 0 else Binary("==", Rank(tensor), number(rank))
        state.assume(asked, True)
        state.feasible = True
    return View(tensor, this.name, type_, rank)


def _raw(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("raw", this.node, state, on=this.on)
    return Pointer(this.on, ZERO, "void")


def _tensor_data(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("raw", this.node, state, on=this.on, name="tensor_data")
    return View(this.on, "tensor_data", "char", 1)


TENSOR: dict[str, Handler] = {
    "shape": _about(Shape),
    "dims": _about(Rank),
    "NumElements": _about(NumElements),
    "TotalBytes": _about(ByteSize),
    "AllocatedBytes": _about(ByteSize),
    "dtype": _about(DType),
    "dim_size": _dim,
    "data": _raw,
    "tensor_data": _tensor_data,
    "IsInitialized": lambda _, this, __: Result("IsInitialized", (this.on,)),
    "IsSameSize": lambda walker, this, state: Binary("==", Shape(this.on), Shape(this.value(walker, state, 0))),
    **dict.fromkeys(
        ("flat", "vec", "matrix", "tensor", "scalar", "unaligned_flat", "shaped", "unaligned_shaped", "flat_inner_dims",
         "flat_outer_dims", "flat_inner_outer_dims", "bit_casted_tensor", "reinterpret_last_dimension"), _view
    ),
}  # fmt: skip


def _rank(_: Walker, this: Call, __: State) -> Symbol:
    return number(len(this.on.dims)) if isinstance(this.on, ShapeOf) else Rank(_shaped(this.on))


def _num_elements(_: Walker, this: Call, __: State) -> Symbol:
    return product(this.on.dims) if isinstance(this.on, ShapeOf) else NumElements(_shaped(this.on))


def _shaped(shape: Symbol) -> Symbol:
    """The tensor whose shape it is."""
    return shape.subject if isinstance(shape, Shape) else shape


def _changed_shape(walker: Walker, this: Call, state: State) -> Symbol:
    """AddDim, set_dim, RemoveDim: from now on it is another shape, made of the old one."""
    values = this.values(walker, state)
    if this.name in ("AddDim", "set_dim", "InsertDim"):
        walker.note("size", this.node, state, by=values[-1:], name="shape")
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    old = this.on
    new: Symbol = Result(this.name, (old, *values))
    if isinstance(old, ShapeOf) and this.name == "AddDim" and walker.loops == 0:
        new = ShapeOf((*old.dims, *values[:1]))
    if target is not None and target.kind == "identifier" and target.text in state.variables:
        state.variables[target.text] = new
    return Status(this.name) if this.name.endswith("WithStatus") else UNKNOWN


SHAPE: dict[str, Handler] = {
    "dims": _rank,
    "num_elements": _num_elements,
    "dim_size": _dim,
    "IsSameSize": lambda walker, this, state: Binary("==", this.on, this.value(walker, state, 0)),
    **dict.fromkeys(
        ("AddDim", "set_dim", "InsertDim", "RemoveDim", "RemoveLastDims", "AddDimWithStatus", "SetDimWithStatus",
         "AppendShape", "RemoveDimWithStatus", "InsertDimWithStatus", "RemoveDimRange", "RemoveFirstDims"),
        _changed_shape,
    ),
}  # fmt: skip


def _dimension(walker: Walker, this: Call, state: State) -> Symbol:
    at = this.value(walker, state, 0)
    match this.on:
        case View(tensor, "flat" | "unaligned_flat"):
            return NumElements(tensor)
        case View(tensor, "vec" | "matrix" | "tensor"):
            return Dim(tensor, at)
        case View(tensor, method):
            return ViewDim(tensor, method, at)
    return UNKNOWN


def _pointer(walker: Walker, this: Call, state: State) -> Symbol:
    match this.on:
        case View(tensor, "tensor_data"):
            walker.note("raw", this.node, state, on=tensor)
            return Pointer(tensor, ZERO, "void")
        case View(tensor, _, type_):
            return Pointer(tensor, ZERO, type_)
    return UNKNOWN


def _device(walker: Walker, this: Call, state: State) -> Symbol:
    this.values(walker, state)
    return this.on


def _fill(walker: Walker, this: Call, state: State) -> Symbol:
    this.values(walker, state)
    mark_written(state, this.on)
    return this.on


def _size(_: Walker, this: Call, __: State) -> Symbol:
    match this.on:
        case View(tensor, "tensor_data"):
            return ByteSize(tensor)
        case View(tensor):
            return NumElements(tensor)
    return UNKNOWN


VIEW: dict[str, Handler] = {
    "size": _size,
    "dimension": _dimension,
    "data": _pointer,
    "device": _device,
    **dict.fromkeys(("setZero", "setConstant", "setRandom", "setValues"), _fill),
}
