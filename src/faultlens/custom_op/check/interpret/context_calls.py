"""What the methods of OpKernelContext do, and the functions of TensorFlow's C interface that stand for them."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.buffer_symbols import (
    AddressOfName,
    ByteSize,
    Dim,
    DType,
    Forwarded,
    Input,
    NumElements,
    Output,
    Pointer,
    Property,
    Rank,
    ShapeOf,
    Temporary,
)
from faultlens.custom_op.check.interpret.call_symbols import (
    CONTEXT_STATUS,
    ERROR,
    Braces,
    InputList,
    Lambda,
    MaybeNull,
    Ok,
    ResourceReference,
    Result,
    Status,
)
from faultlens.custom_op.check.interpret.callbacks import hand_over
from faultlens.custom_op.check.interpret.known import Call, Handler, store
from faultlens.custom_op.check.interpret.state import ALL, Held, State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Attr, Int, String, Symbol
from faultlens.custom_op.check.interpret.walk import Walker


def _input_at(walker: Walker, value: Symbol) -> Input:
    """ctx->input(0), ctx->input("x"): the number of it, or its name."""
    if isinstance(value, String):
        known = walker.op.input_number(value.text) if walker.op is not None else None
        return Input(value.text if known is None else known)
    return Input(value.value if isinstance(value, Int) else value)


def _output_at(walker: Walker, value: Symbol) -> Output:
    if isinstance(value, String):
        known = walker.op.output_number(value.text) if walker.op is not None else None
        return Output(value.text if known is None else known)
    return Output(value.value if isinstance(value, Int) else value)


def _input(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if not values:
        return UNKNOWN
    tensor = _input_at(walker, values[0])
    if len(values) > 1:
        store(walker, this, state, values[-1], tensor)
        return Status(this.name)
    walker.note("call", this.node, state, name="input", by=(values[0],), detail="context")
    return tensor


def _list(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if this.name == "output_list":
        state.outputs |= {ALL}
    if len(values) > 1:
        store(walker, this, state, values[-1], InputList(next(values[0].names(), "")))
    return Status(this.name)


def _allocate_output(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    forwarding = this.name.startswith("forward")
    at = 1 if forwarding else 0
    if len(values) < at + 3:
        state.outputs |= {ALL}
        return Status(this.name)
    tensor = _output_at(walker, values[at])
    state.outputs |= {ALL if isinstance(tensor.index, Symbol) else tensor}
    state.shapes[tensor] = values[at + 1]
    if forwarding:
        state.shapes[Forwarded(tensor)] = values[0]
    walker.note("output", this.node, state, on=tensor, by=(values[at], values[at + 1]), name=this.name)
    store(walker, this, state, values[at + 2], tensor)
    return Status(this.name, tensor)


def _allocate_temp(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) < 3:
        return Status(this.name)
    at = 3 if this.name.startswith("forward") and len(values) > 4 else 2
    tensor: Symbol = Temporary(this.node.start)
    state.shapes[tensor] = values[at - 1]
    store(walker, this, state, values[at], tensor)
    return Status(this.name, tensor)


def _set_output(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if values:
        tensor = _output_at(walker, values[0])
        state.outputs |= {ALL if isinstance(tensor.index, Symbol) else tensor}
        state.written |= {tensor}
        walker.note("output", this.node, state, on=tensor, by=values[:2], name=this.name)
    return Status(this.name) if values and isinstance(values[0], String) else UNKNOWN


def _mutable_output(walker: Walker, this: Call, state: State) -> Symbol:
    return _output_at(walker, this.value(walker, state, 0))


def _forward_output(walker: Walker, this: Call, state: State) -> Symbol:
    """Returns whether it was possible."""
    values = this.values(walker, state)
    state.outputs |= {ALL}
    for value in values:
        store(walker, this, state, value, Output("forwarded"))
    return Result(this.name, tuple(values))


def _forward_input(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    return MaybeNull(this.name, tuple(values))


def _set_status(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    value = values[-1] if values else UNKNOWN
    failed = value == ERROR or any(not fact.holds and fact.condition == Ok(value) for fact in state.facts)
    if failed and state.failed is None:
        state.failed = this.node
    return UNKNOWN


def _get_attr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) > 1:
        name = values[0].text if isinstance(values[0], String) else "?"
        store(walker, this, state, values[1], Attr(name))
    return Status(this.name)


def _input_dtype(walker: Walker, this: Call, state: State) -> Symbol:
    return DType(_input_at(walker, this.value(walker, state, 0)))


def _lookup(walker: Walker, this: Call, state: State) -> Symbol:
    """A reference that must be given back with Unref."""
    values = this.values(walker, state)
    resource: Symbol = ResourceReference(this.node.start)
    for value in values:
        if isinstance(value, AddressOfName):
            name = value.name
            if state.types.get(name, "").endswith("*") and not name.startswith("this."):
                state.held[resource] = Held("reference", this.node)
            store(walker, this, state, value, resource)
        elif isinstance(value, Lambda):
            hand_over(walker, [value], state)
    return Status(this.name, resource)


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
    "status": lambda _, __, ___: CONTEXT_STATUS,
    "SetStatus": _set_status,
    "CtxFailure": _set_status,
    "CtxFailureWithWarning": _set_status,
    "GetAttr": _get_attr,
    "input_dtype": _input_dtype,
    "input_type": _input_dtype,
    "num_inputs": lambda _, __, ___: Result("num_inputs"),
    "num_outputs": lambda _, __, ___: Result("num_outputs"),
}


def _all_set(_: list[Symbol], state: State) -> Symbol:
    state.outputs |= {ALL}
    return UNKNOWN


# ---------------------------------------------------------------------------------- the C interface


def _c_input(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) > 2:
        store(walker, this, state, values[2], _input_at(walker, values[1]))
    return UNKNOWN


def _c_output(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    tensor = _output_at(walker, values[1]) if len(values) > 1 else ALL
    state.outputs |= {tensor}
    if len(values) > 3 and isinstance(values[3], (Result, Pointer)):
        state.shapes[tensor] = values[3]
    return tensor


def _c_about(kind: type[Property]) -> Handler:
    def about(walker: Walker, this: Call, state: State) -> Symbol:
        values = this.values(walker, state)
        return kind(values[0]) if values else UNKNOWN

    return about


def _c_dim(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) < 2:
        return UNKNOWN
    walker.note("dim", this.node, state, on=values[0], by=values[1:2])
    return Dim(values[0], values[1])


def _c_data(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if not values:
        return UNKNOWN
    walker.note("raw", this.node, state, on=values[0])
    return Pointer(values[0], ZERO, "void")


def _build_shape(walker: Walker, this: Call, state: State) -> Symbol:
    """TensorShape::BuildTensorShape({a, b}, &shape): an error where a size is negative, no CHECK."""
    values = this.values(walker, state)
    if len(values) == 2:
        dims = values[0]
        made = ShapeOf(dims.values) if isinstance(dims, Braces) else Result(this.name, (dims,))
        store(walker, this, state, values[1], made)
    return Status(this.name)


def _node_attr(walker: Walker, this: Call, state: State) -> Symbol:
    values = this.values(walker, state)
    if len(values) > 2:
        store(walker, this, state, values[2], Attr(values[1].text if isinstance(values[1], String) else "?"))
    return Status(this.name)


FUNCTIONS: dict[str, Handler] = {
    "BuildTensorShape": _build_shape,
    "TF_GetInput": _c_input,
    "TF_AllocateOutput": _c_output,
    "TF_TensorData": _c_data,
    "TF_TensorElementCount": _c_about(NumElements),
    "TF_TensorByteSize": _c_about(ByteSize),
    "TF_NumDims": _c_about(Rank),
    "TF_Dim": _c_dim,
    "TF_TensorType": _c_about(DType),
    "LookupResource": _lookup,
    "LookupOrCreateResource": _lookup,
    "GetNodeAttr": _node_attr,
}
