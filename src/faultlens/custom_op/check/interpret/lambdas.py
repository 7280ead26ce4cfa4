"""What lambdas do: called here, handed to somebody else, or run by other threads."""

from __future__ import annotations

import re

from faultlens.custom_op.check.interpret.call_summaries import DEEPEST, apply
from faultlens.custom_op.check.interpret.call_symbols import Lambda
from faultlens.custom_op.check.interpret.callbacks import has_callback
from faultlens.custom_op.check.interpret.known import Call
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, ZERO, Loop, Param, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.functions import Function, parameters_of
from faultlens.custom_op.check.syntax.syntax import Node

_PARALLEL = re.compile(r"shard|parallel|schedule|thread|async|enqueue|submit|concurrently|launch", re.IGNORECASE)


def run_lambda(walker: Walker, callee: Lambda, values: list[Symbol], state: State) -> Symbol:
    function = walker.lambdas[callee.place]
    if function in [frame.function for frame in walker.frames] or len(walker.frames) > DEEPEST:
        return UNKNOWN
    names = [parameter.name for parameter in function.parameters]

    def summarize() -> list[tuple[State, Symbol]]:
        inner = state.copy()
        for parameter, value in zip(function.parameters, values, strict=False):
            inner.variables[parameter.name] = value
            inner.types[parameter.name] = parameter.type
        for name in names[len(values) :]:
            inner.variables[name] = Param(name)
        return walker.run(function, inner)

    return apply(walker, walker.once(function.node, summarize), state, hidden=names)


def given_lambda(walker: Walker, this: Call, value: Lambda, values: list[Symbol], state: State) -> None:
    """It may run now or later, once or often."""
    if has_callback(walker, value):
        state.callback_escaped = True
    done = state.callback_calls
    if _PARALLEL.search(this.name) or "workers" in this.node.text:
        _in_parallel(walker, this.node, this.name, value, values, state)
    else:
        walker.deferred += 1
        try:
            run_lambda(walker, value, [], state)
        finally:
            walker.deferred -= 1
    state.callback_calls = done


def _in_parallel(walker: Walker, node: Node, name: str, callee: Lambda, values: list[Symbol], state: State) -> None:
    """A lambda that other threads run, maybe several at once."""
    before, locks = (walker.parallel, walker.shared), state.locks
    walker.note("parallel", node, state, name=name, on=callee)
    walker.parallel, walker.shared = walker.lambdas[callee.place].node, frozenset(state.variables)
    state.locks = ()  # the other threads do not hold them
    try:
        run_lambda(walker, callee, _range(walker, callee, values), state)
    finally:
        walker.parallel, walker.shared = before
        state.locks = locks


def _range(walker: Walker, callee: Lambda, values: list[Symbol]) -> list[Symbol]:
    """Shard(…, total, cost, work(begin, end)): the two stay within 0 and the total."""
    parameters = walker.lambdas[callee.place].parameters
    numbers = [value for value in values if not isinstance(value, Lambda)]
    total = numbers[2] if len(numbers) >= 4 else numbers[0] if numbers else UNKNOWN
    place = walker.lambdas[callee.place].node.start
    if len(parameters) == 1:
        return [Loop(parameters[0].name, place, ZERO, total, 1)]
    return [Loop(parameters[0].name, place, ZERO, total, 1), total] if len(parameters) >= 2 else []


def lambda_expression(walker: Walker, node: Node, _: State) -> Symbol:
    declarator, body = node.get("declarator"), node.get("body")
    if body is None:
        return UNKNOWN
    parameters = parameters_of(declarator) if declarator is not None else ()
    walker.lambdas.setdefault(node.start, Function("lambda", node, body, parameters, "auto"))
    return Lambda(node.start)
