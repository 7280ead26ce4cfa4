"""What a call does: functions of the same source are followed, those of TensorFlow and C++ known, others not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from faultlens.custom_op.check.interpret import (
    container_calls,
    context_calls,
    memory_calls,
    standard_calls,
    tensor_calls,
)
from faultlens.custom_op.check.interpret.buffer_symbols import (
    AddressOfName,
    Element,
    Heap,
    Pointer,
    Shape,
    ShapeOf,
    Text,
    Vector,
    View,
    buffer_of,
    is_tensor,
)
from faultlens.custom_op.check.interpret.call_summaries import DEEPEST, apply, summarize
from faultlens.custom_op.check.interpret.call_symbols import ERROR, SUCCESS, Lambda, Object, Result, ViewExpression
from faultlens.custom_op.check.interpret.callbacks import hand_over, has_callback, is_callback
from faultlens.custom_op.check.interpret.casts import cast
from faultlens.custom_op.check.interpret.declarations import made
from faultlens.custom_op.check.interpret.known import Call, Handler, given_values
from faultlens.custom_op.check.interpret.lambdas import given_lambda, run_lambda
from faultlens.custom_op.check.interpret.places import element, mark_written, outlives, use
from faultlens.custom_op.check.interpret.state import ALL, State
from faultlens.custom_op.check.interpret.symbols import (
    CONTEXT,
    NULL,
    THIS,
    UNKNOWN,
    ZERO,
    Name,
    Null,
    Param,
    Persistent,
    Symbol,
)
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.functions import Function
from faultlens.custom_op.check.syntax.syntax import Node, arguments, name_of, template_arguments
from faultlens.custom_op.check.syntax.types import is_plain

_VALUES = ("call_expression", "subscript_expression", "parenthesized_expression", "lambda_expression")
_CASTS = ("static_cast", "reinterpret_cast", "const_cast", "dynamic_cast", "bit_cast")
_TAKES = re.compile(
    r"own|take|reset|adopt|release|push|insert|emplace|make|add|set|register|unref|delete|free|clean", re.I
)
_ERRORS = re.compile(
    r"(?:^|::)errors::\w+|(?:^|::)\w+Error$|^(?:InvalidArgument|OutOfRange|Internal|NotFound|Unimplemented|Unknown|DataLoss"
    r"|FailedPrecondition|ResourceExhausted|Aborted|AlreadyExists|PermissionDenied|Unavailable|DeadlineExceeded|Cancelled)$"
)
_CHANGES = ("push_back", "emplace_back", "insert", "emplace", "clear", "resize", "erase", "pop_back", "assign",
            "append", "try_emplace", "insert_or_assign", "push", "pop", "pop_front", "push_front", "reserve", "swap",
            "reset")  # fmt: skip


def call(walker: Walker, node: Node, state: State) -> Symbol:
    return _call(walker, node, state, "")


def write_call(walker: Walker, node: Node, state: State, operator: str) -> None:
    """f(i) = …"""
    mark_written(state, _call(walker, node, state, operator))


def _call(walker: Walker, node: Node, state: State, write: str) -> Symbol:
    function, given = node.get("function"), arguments(node)
    if function is None:
        return UNKNOWN
    name, types = name_of(function), template_arguments(function)
    if function.kind == "field_expression":
        object_ = walker.evaluate(function.get("argument"), state)
        types = template_arguments(function.get("field"))
        return _method(walker, Call(node, name, given, types, object_), state)
    if name in _CASTS and types:
        return cast(walker, node, state, name, types[0], walker.evaluate(given[0], state) if given else UNKNOWN)
    if function.kind == "identifier" and name in state.variables:
        return _callee(walker, node, state.variables[name], given, state, write)
    if function.kind in _VALUES or (walker.owner is not None and function.text in walker.owner.members):
        return _callee(walker, node, walker.evaluate(function, state), given, state, write)
    return _named(walker, Call(node, name, given, types, None), function, state)


# ------------------------------------------------------------------------------------------ by value


def _callee(walker: Walker, node: Node, callee: Symbol, given: list[Node], state: State, write: str) -> Symbol:
    """value(…): an element of a view, a lambda, or an object with operator()."""
    if isinstance(callee, (View, Null)):
        return element(walker, node, state, callee, given_values(walker, given, state), write)
    values = given_values(walker, given, state)
    if isinstance(callee, Persistent) and _is_engine(walker, callee):
        outlives(walker, node, state, callee)
    if isinstance(callee, Lambda):
        return run_lambda(walker, callee, values, state)
    if isinstance(callee, Object) and (found := walker.program.method(callee.class_name, "operator()", len(values))):
        return _inline(walker, node, found, values, state)
    if is_callback(walker, callee):
        state.callback_calls += 1
        return UNKNOWN
    return _unknown(walker, Call(node, "operator()", given, [], callee), values, state)


# ------------------------------------------------------------------------------------------- methods


def _method(walker: Walker, this: Call, state: State) -> Symbol:
    object_ = this.on
    if (
        this.name in ("lock", "Lock", "unlock", "Unlock")
        and not this.given
        and not isinstance(object_, (Param, Result))
    ):
        return standard_calls.lock(walker, this, state)
    if isinstance(object_, AddressOfName) and object_.name in state.variables:  # values->push_back(…)
        object_ = state.variables[object_.name]
        this = replace(this, object=object_)
    function = this.node.get("function")
    if isinstance(object_, Heap) and function is not None and "new " in function.text.partition("->")[0]:
        state.escape(object_)  # (new Work(ctx))->Start() frees itself
    if function is not None and function.operator == "->":
        use(walker, this.node, state, object_)
    if not state.feasible:
        return UNKNOWN
    if object_ == NULL and function is not None and (target := function.get("argument")) is not None:
        _set(state, target.text, UNKNOWN)  # reset() of a smart pointer
        if walker.owner is not None and target.text in walker.owner.members:
            state.members[target.text] = UNKNOWN
        object_ = UNKNOWN
    for table, fits in _METHODS:
        if fits(object_) and this.name in table:
            return table[this.name](walker, this, state)
    values = this.values(walker, state)
    if this.name in ("data", "c_str") and _is_text(object_):
        return Pointer(Text(object_), ZERO, "char")
    if object_ == THIS or isinstance(object_, Object):
        class_ = object_.class_name if isinstance(object_, Object) else walker.owner.name if walker.owner else ""
        if found := walker.program.method(class_, this.name, len(values)):
            return _inline(walker, this.node, found, values, state)
    if this.name in _CHANGES:
        state.moved(object_)
    if this.name in _CHANGES and not isinstance(object_, (View, Pointer)):
        outlives(walker, this.node, state, object_, values[0] if values else UNKNOWN)
        container_calls.note_captured(walker, this, state)
    if isinstance(object_, View):
        mark_written(state, object_)
        return ViewExpression(object_, tuple(values))
    return _unknown(walker, this, values, state)


def _is_text(symbol: Symbol) -> TypeGuard[Element]:
    return isinstance(symbol, Element) and symbol.type == "tstring" and is_tensor(symbol.buffer)


_METHODS: tuple[tuple[dict[str, Handler], Callable[[Symbol], bool]], ...] = (
    (context_calls.METHODS, lambda symbol: symbol == CONTEXT),
    (tensor_calls.TENSOR, is_tensor),
    (tensor_calls.SHAPE, lambda symbol: isinstance(symbol, (Shape, ShapeOf))),
    (tensor_calls.VIEW, lambda symbol: isinstance(symbol, View)),
    (container_calls.CONTAINER, lambda symbol: isinstance(symbol, Vector)),
    (standard_calls.ANY, bool),
)


# ----------------------------------------------------------------------------------------- functions


def _named(walker: Walker, this: Call, function: Node, state: State) -> Symbol:
    text = function.text.replace("tensorflow::", "")
    handler = context_calls.FUNCTIONS.get(this.name) or standard_calls.FUNCTIONS.get(this.name)
    if handler is not None:
        return handler(walker, this, state)
    values = this.values(walker, state)
    if _ERRORS.search(text.partition("(")[0]):
        return ERROR
    if this.name in ("OkStatus", "OK") or (this.name == "Status" and not values):
        return SUCCESS
    if this.name == "Status" and len(values) > 1:
        return ERROR
    if this.name in ("TensorShape", "Tensor", "vector", "thread"):
        return made(walker, function.text, values, this.node.start, this.node, state)
    if function.kind == "template_type" or (
        walker.program.class_(this.name) and this.name not in walker.program.function_names
    ):
        hand_over(walker, values, state)
        return Object(this.name, tuple(values))
    if this.name == walker.callback and walker.callback:
        state.callback_calls += 1
        return UNKNOWN
    found = _find(walker, this, function, len(values))
    if found is not None:
        return _inline(walker, this.node, found, values, state)
    return _unknown(walker, this, values, state)


def _find(walker: Walker, this: Call, function: Node, count: int) -> Function | None:
    scope = name_of(function.get("scope")) if function.kind == "qualified_identifier" else ""
    if scope and (found := walker.program.method(scope, this.name, count)):
        return found
    if walker.owner is not None and not scope and (found := walker.program.method(walker.owner.name, this.name, count)):
        return found
    return walker.program.function(this.name, count)


def _inline(walker: Walker, node: Node, function: Function, values: list[Symbol], state: State) -> Symbol:
    """Follows the call; how it may end is chosen by `walker.fork`."""
    for value in values:
        if isinstance(value, Lambda) and has_callback(walker, value):
            state.callback_escaped = True
    if any(frame.function is function for frame in walker.frames):
        walker.note("recursion", node, state, name=function.name, by=values)
        return Result(function.name, tuple(values))
    if len(walker.frames) > DEEPEST:
        return _unknown(walker, Call(node, function.name, [], [], None), values, state)
    return apply(walker, walker.once(node, lambda: summarize(walker, node, function, values, state)), state)


def _unknown(walker: Walker, this: Call, values: list[Symbol], state: State) -> Symbol:
    """Nothing is known of it: what it was given may be written, kept or checked."""
    walker.note("call", this.node, state, on=this.on, by=values, name=this.name)
    if this.object is None and this.name in memory_calls.ALGORITHMS:
        memory_calls.ranges(walker, this, state, values)
    for value in values:
        if isinstance(value, Persistent) and _is_engine(walker, value):
            outlives(walker, this.node, state, value)
        if value == CONTEXT:
            state.outputs |= {ALL}
        elif isinstance(value, AddressOfName):
            _set(state, value.name, Result(this.name, tuple(each for each in values if each != value)))
        elif isinstance(value, Lambda):
            given_lambda(walker, this, value, values, state)
        elif is_callback(walker, value):
            state.callback_escaped = True
        elif (held := state.held.get(value)) is not None:
            if held.state == "freed":
                walker.note("touch", this.node, state, on=value)
            if _TAKES.search(this.name) or not isinstance(value, Heap) or not is_plain(value.type or "float"):
                state.escape(value)
        elif buffer_of(value):
            use(walker, this.node, state, value)
            mark_written(state, value)
    if this.object is not None and not isinstance(this.object, Name):
        return Result(this.name, (this.object, *values))
    return Result(this.name, tuple(values))


def _is_engine(walker: Walker, value: Persistent) -> bool:
    """A generator of random numbers: each number that it gives changes it."""
    name = value.name
    member = walker.owner.members.get(name) if walker.owner is not None else None
    kind = member.type if member else walker.program.globals.get(name, "")
    return bool(
        re.search(
            r"\b(?:mt19937\w*|default_random_engine|minstd_rand0?|knuth_b|ranlux\w*|SimplePhilox|PhiloxRandom"
            r"|(?:log)?normal_distribution|gamma_distribution)\b",
            kind,
        )
    )


def _set(state: State, name: str, value: Symbol) -> None:
    if name.startswith("this."):
        state.members[name[5:]] = value
    else:
        state.variables[name] = value
        state.uninitialized -= {name}
