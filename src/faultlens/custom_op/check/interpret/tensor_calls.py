"""What the methods of Tensor, TensorShape and Eigen's views stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.known import Call, Handler
from faultlens.custom_op.check.interpret.places import mark_written
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Symbol, constant, number, parts

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker

RANKS = {"vec": 1, "matrix": 2, "scalar": 0}


def _about(kind: str) -> Handler:
    return lambda _, this, __: (kind, this.on)


def _dim(walker: Walker, this: Call, state: State) -> Symbol:
    tensor, at = this.on, this.value(walker, state, 0)
    if tensor[0] == "mkshape":
        known = constant(at)
        return tensor[1 + known] if known is not None and 0 <= known < len(tensor) - 1 else UNKNOWN
    tensor = tensor[1] if tensor[0] == "shape" else tensor
    walker.note("dim", this.node, state, on=tensor, by=(at,))
    least = ZERO if ("dims", tensor) in parts(at) else at  # x.dim_size(x.dims() - 1)
    state.assume(("alive", (">", ("dims", tensor), least)), True)
    state.possible = True
    return ("dim", tensor, at)


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
        state.assume(
            ("==", ("numel", tensor), number(1)) if rank == 0 else ("==", ("dims", tensor), number(rank)), True
        )
        state.possible = True
    return ("view", tensor, this.name, type_, rank)


def _raw(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("raw", this.node, state, on=this.on)
    return ("ptr", this.on, ZERO, "void")


def _tensor_data(walker: Walker, this: Call, state: State) -> Symbol:
    walker.note("raw", this.node, state, on=this.on, name="tensor_data")
    return ("view", this.on, "tensor_data", "char", 1)


TENSOR: dict[str, Handler] = {
    "shape": _about("shape"),
    "dims": _about("dims"),
    "NumElements": _about("numel"),
    "TotalBytes": _about("bytes"),
    "AllocatedBytes": _about("bytes"),
    "dtype": _about("dtype"),
    "dim_size": _dim,
    "data": _raw,
    "tensor_data": _tensor_data,
    "IsInitialized": lambda _, this, __: ("call", "IsInitialized", this.on),
    "IsSameSize": lambda walker, this, state: ("==", ("shape", this.on), ("shape", this.value(walker, state, 0))),
    **dict.fromkeys(
        ("flat", "vec", "matrix", "tensor", "scalar", "unaligned_flat", "shaped", "unaligned_shaped", "flat_inner_dims",
         "flat_outer_dims", "flat_inner_outer_dims", "bit_casted_tensor", "reinterpret_last_dimension"), _view
    ),
}  # fmt: skip


def _of_shape(kind: str) -> Handler:
    def about(_: Walker, this: Call, __: State) -> Symbol:
        shape = this.on
        if shape[0] == "shape":
            return (kind, shape[1])
        if kind == "dims":
            return number(len(shape) - 1)
        product: Symbol = number(1)
        for dim in shape[1:]:
            product = dim if product == number(1) else ("*", product, dim)
        return product

    return about


def _changed_shape(walker: Walker, this: Call, state: State) -> Symbol:
    """AddDim, set_dim, RemoveDim: from now on it is another shape, made of the old one."""
    values = this.values(walker, state)
    if this.name in ("AddDim", "set_dim", "InsertDim"):
        walker.note("size", this.node, state, by=values[-1:], name="shape")
    function = this.node.get("function")
    target = function.get("argument") if function is not None else None
    old = this.on
    new: Symbol = ("call", this.name, old, *values)
    if old[0] == "mkshape" and this.name == "AddDim" and not state_in_loop(walker):
        new = (*old, *values[:1])
    if target is not None and target.kind == "identifier" and target.text in state.variables:
        state.variables[target.text] = new
    return ("status", this.name) if this.name.endswith("WithStatus") else UNKNOWN


def state_in_loop(walker: Walker) -> bool:
    return walker.loops > 0


SHAPE: dict[str, Handler] = {
    "dims": _of_shape("dims"),
    "num_elements": _of_shape("numel"),
    "dim_size": _dim,
    "IsSameSize": lambda walker, this, state: ("==", this.on, this.value(walker, state, 0)),
    **dict.fromkeys(
        ("AddDim", "set_dim", "InsertDim", "RemoveDim", "RemoveLastDims", "AddDimWithStatus", "SetDimWithStatus",
         "AppendShape", "RemoveDimWithStatus", "InsertDimWithStatus", "RemoveDimRange", "RemoveFirstDims"),
        _changed_shape,
    ),
}  # fmt: skip


def _dimension(walker: Walker, this: Call, state: State) -> Symbol:
    view, at = this.on, this.value(walker, state, 0)
    if view[2] in ("flat", "unaligned_flat"):
        return ("numel", view[1])
    if view[2] in ("vec", "matrix", "tensor"):
        return ("dim", view[1], at)
    return ("dims2", view[1], view[2], at)


def _pointer(walker: Walker, this: Call, state: State) -> Symbol:
    view = this.on
    if view[2] == "tensor_data":
        walker.note("raw", this.node, state, on=view[1])
        return ("ptr", view[1], ZERO, "void")
    return ("ptr", view[1], ZERO, view[3])


def _fill(walker: Walker, this: Call, state: State) -> Symbol:
    this.values(walker, state)
    mark_written(state, this.on)
    return this.on


def _size(_: Walker, this: Call, __: State) -> Symbol:
    return ("bytes" if this.on[2] == "tensor_data" else "numel", this.on[1])


VIEW: dict[str, Handler] = {
    "size": _size,
    "dimension": _dimension,
    "data": _pointer,
    "device": lambda walker, this, state: (this.values(walker, state) and this.on) or this.on,
    **dict.fromkeys(("setZero", "setConstant", "setRandom", "setValues"), _fill),
}
