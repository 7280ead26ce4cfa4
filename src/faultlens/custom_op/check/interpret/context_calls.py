"""What the methods of OpKernelContext do, and the functions of TensorFlow's C interface that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultlens.custom_op.check.interpret.known import Call, Handler, store
from faultlens.custom_op.check.interpret.state import ALL, Held, State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Symbol, number

if TYPE_CHECKING:
    from faultlens.custom_op.check.interpret.walk import Walker


def _which(walker: Walker, value: Symbol, kind: str) -> Symbol:
    """ctx->input(0), ctx->input("x"): the number of it, or its name."""
    if value[0] == "str" and walker.op is not None:
        find = walker.op.input_number if kind == "input" else walker.op.output_number
        known = find(value[1])
        return (kind, known) if known is not None else (kind, value[1])
    return (kind, value[1]) if value[0] in ("int", "str") else (kind, value)


def _input(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if not values:
        return UNKNOWN
    tensor = _which(walker, values[0], "input")
    if len(values) > 1:
        store(walker, this, state, values[-1], tensor)
        return ("status", this.name)
    walker.note("call", this.node, state, name="input", by=(values[0],), detail="context")
    return tensor


def _list(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if this.name == "output_list":
        state.outputs |= {ALL}
    if len(values) > 1:
        store(walker, this, state, values[-1], ("inputs", str(values[0][-1])))
    return ("status", this.name)


def _allocate_output(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    forwarding = this.name.startswith("forward")
    at = 1 if forwarding else 0
    if len(values) < at + 3:
        state.outputs |= {ALL}
        return ("status", this.name)
    tensor = _which(walker, values[at], "output")
    state.outputs |= {tensor if not isinstance(tensor[1], tuple) else ALL}
    state.shapes[tensor] = values[at + 1]
    if forwarding:
        state.shapes[("forwarded", tensor)] = values[0]
    walker.note("output", this.node, state, on=tensor, by=(values[at], values[at + 1]), name=this.name)
    store(walker, this, state, values[at + 2], tensor)
    return ("status", this.name, tensor)


def _allocate_temp(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) < 3:
        return ("status", this.name)
    at = 3 if this.name.startswith("forward") and len(values) > 4 else 2
    tensor: Symbol = ("temp", this.node.start)
    state.shapes[tensor] = values[at - 1]
    store(walker, this, state, values[at], tensor)
    return ("status", this.name, tensor)


def _set_output(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if values:
        tensor = _which(walker, values[0], "output")
        state.outputs |= {tensor if not isinstance(tensor[1], tuple) else ALL}
        state.written |= {tensor}
        walker.note("output", this.node, state, on=tensor, by=values[:2], name=this.name)
    return ("status", this.name) if values and values[0][0] == "str" else UNKNOWN


def _mutable_output(walker: Walker, this: Call, state: State) -> Symbol:
    return _which(walker, this.value(walker, state, 0), "output")


def _forward_output(walker: Walker, this: Call, state: State) -> Symbol:
    """Returns whether it was possible."""
    values = this.values(walker, state)
    state.outputs |= {ALL}
    for value in values:
        store(walker, this, state, value, ("output", "forwarded"))
    return ("call", this.name, *values)


def _forward_input(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    return ("maybe", this.name, *values)


def _set_status(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    value = values[-1] if values else UNKNOWN
    failed = value == ("error",) or any(not fact.holds and fact.condition == ("ok", value) for fact in state.facts)
    if failed and state.failed is None:
        state.failed = this.node
    return UNKNOWN


def _get_attr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) > 1:
        name = values[0][1] if values[0][0] == "str" else "?"
        store(walker, this, state, values[1], ("attr", name))
    return ("status", this.name)


def _dtype(kind: str) -> Handler:
    return lambda walker, this, state: ("dtype", _which(walker, this.value(walker, state, 0), kind))


def _lookup(walker: Walker, this: Call, state: State) -> Symbol:
    """A reference that must be given back with Unref."""
    values = this.values(walker, state)
    resource: Symbol = ("resource", this.node.start)
    for value in values:
        if value[0] == "addr":
            name = str(value[1])
            if state.types.get(name, "").endswith("*") and not name.startswith("this."):
                state.held[resource] = Held("reference", this.node)
            store(walker, this, state, value, resource)
        elif value[0] == "lambda":
            walker.hand_over([value], state)
    return ("status", this.name, resource)


METHODS: dict[str, Handler] = {
    "input": _input,
    "mutable_input": _input,
    "input_list": _list,
    "output_list": _list,
    "mutable_input_list": _list,
    "allocate_output": _allocate_output,
    "forward_input_or_allocate_output": _allocate_output,
    "allocate_temp": _allocate_temp,
    "allocate_persistent": _allocate_temp,
    "forward_input_or_allocate_temp": _allocate_temp,
    "set_output": _set_output,
    "set_output_ref": _set_output,
    "forward_ref_input_to_ref_output": lambda walker, this, state: _all_set(this.values(walker, state), state),
    "mutable_output": _mutable_output,
    "forward_input_to_output_with_shape": _forward_output,
    "forward_input": _forward_input,
    "status": lambda _, __, ___: ("ctx-status",),
    "SetStatus": _set_status,
    "CtxFailure": _set_status,
    "CtxFailureWithWarning": _set_status,
    "GetAttr": _get_attr,
    "input_dtype": _dtype("input"),
    "input_type": _dtype("input"),
    "num_inputs": lambda _, __, ___: ("call", "num_inputs"),
    "num_outputs": lambda _, __, ___: ("call", "num_outputs"),
}


def _all_set(_: list[Symbol], state: State) -> Symbol:
    state.outputs |= {ALL}
    return UNKNOWN


# ---------------------------------------------------------------------------------- the C interface


def _c_input(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) > 2:
        store(walker, this, state, values[2], _which(walker, values[1], "input"))
    return UNKNOWN


def _c_output(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    tensor = _which(walker, values[1], "output") if len(values) > 1 else ALL
    state.outputs |= {tensor}
    if len(values) > 3 and (dims := values[3])[0] in ("call", "ptr"):
        state.shapes[tensor] = dims
    return tensor


def _c_about(kind: str) -> Handler:
    def about(walker: Walker, this: Call, state: State) -> Symbol:
        values = this.values(walker, state)
        if not values:
            return UNKNOWN
        if kind == "dim":
            walker.note("dim", this.node, state, on=values[0], by=values[1:2])
        return (kind, *values)

    return about


def _c_data(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if not values:
        return UNKNOWN
    walker.note("raw", this.node, state, on=values[0])
    return ("ptr", values[0], ZERO, "void")


def _build_shape(walker: Walker, this: Call, state: State) -> Symbol:
    """TensorShape::BuildTensorShape({a, b}, &shape): an error where a size is negative, no CHECK."""
    values = this.values(walker, state)
    if len(values) == 2:
        dims = values[0]
        made: Symbol = ("mkshape", *dims[1:]) if dims[0] == "braces" else ("call", this.name, dims)
        store(walker, this, state, values[1], made)
    return ("status", this.name)


FUNCTIONS: dict[str, Handler] = {
    "BuildTensorShape": _build_shape,
    "TF_GetInput": _c_input,
    "TF_AllocateOutput": _c_output,
    "TF_TensorData": _c_data,
    "TF_TensorElementCount": _c_about("numel"),
    "TF_TensorByteSize": _c_about("bytes"),
    "TF_NumDims": _c_about("dims"),
    "TF_Dim": _c_about("dim"),
    "TF_TensorType": _c_about("dtype"),
    "LookupResource": _lookup,
    "LookupOrCreateResource": _lookup,
    "GetNodeAttr": lambda walker, this, state: _node_attr(walker, this, state),
}


def _node_attr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) > 2:
        store(walker, this, state, values[2], ("attr", values[1][1] if values[1][0] == "str" else number(0)))
    return ("status", this.name)
