"""What the macros of TensorFlow do that check and leave: OP_REQUIRES and its kin."""

from __future__ import annotations

from collections.abc import Callable

from faultlens.custom_op.check.interpret import declarations
from faultlens.custom_op.check.interpret.call_symbols import ERROR, Ok
from faultlens.custom_op.check.interpret.places import assign
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Binary, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node


def _requires(walker: Walker, node: Node, given: list[Node], state: State) -> list[State]:
    if len(given) < 2:
        return [state]
    found = walker.fork(state, lambda each: walker.evaluate(given[1], each))
    return _split(walker, node, found, callback=given[3] if len(given) > 3 else None)


def _requires_ok(walker: Walker, node: Node, given: list[Node], state: State) -> list[State]:
    if len(given) < 2:
        return [state]

    def is_ok(each: State) -> Symbol:
        return Ok(walker.evaluate(given[1], each))

    found = walker.fork(state, is_ok)
    return _split(walker, node, found, callback=given[2] if _is_async(node) and len(given) > 2 else None)


def _return_if_error(walker: Walker, node: Node, given: list[Node], state: State) -> list[State]:
    if not given:
        return [state]
    ends = []
    for asked, status in walker.fork(state, lambda each: walker.evaluate(given[0], each)):
        failing = asked.copy()
        failing.assume(Ok(status), False)
        if failing.feasible:
            walker.leave(failing, ERROR, "return", node)
        asked.assume(Ok(status), True)
        ends.append(asked)
    return ends


def _assign_or_return(walker: Walker, node: Node, given: list[Node], state: State) -> list[State]:
    if len(given) < 2:
        return [state]
    ends = []
    for asked, value in walker.fork(state, lambda each: walker.evaluate(given[-1], each)):
        walker.leave(asked.copy(), ERROR, "return", node)
        names = declarations.names_in(given[0])
        assign(walker, names[-1], value, asked, node) if names else None
        ends.append(asked)
    return ends


def _checks(walker: Walker, node: Node, given: list[Node], state: State) -> list[State]:
    """CHECK and assert: what they demand holds behind them, or the process is gone."""
    signs = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
    name = node.text.partition("(")[0].strip()
    ends = []

    def demand(each: State) -> Symbol:
        values = [walker.evaluate(one, each) for one in given]
        sign = signs.get(name.rpartition("_")[2])
        if sign and len(values) > 1:
            return Binary(sign, values[0], values[1])
        return values[0] if values else UNKNOWN

    for asked, condition in walker.fork(state, demand):
        walker.note("call", node, asked, by=(condition,), name=name, detail="check")
        if not name.startswith("D"):  # DCHECK is not compiled into releases
            asked.assume(condition, True)
        ends.append(asked)
    return ends


def _split(walker: Walker, node: Node, found: list[tuple[State, Symbol]], callback: Node | None) -> list[State]:
    ends = []
    for asked, condition in found:
        failing = asked.copy()
        failing.assume(condition, False)
        if failing.feasible:
            if callback is not None:
                failing.callback_calls += 1
            failing.failed, failing.failed_condition = node, condition
            walker.leave(failing, UNKNOWN, "requires", node)
        asked.assume(condition, True)
        ends.append(asked)
    return ends


def _is_async(node: Node) -> bool:
    return node.text.partition("(")[0].strip().endswith("ASYNC")


Macro = Callable[[Walker, Node, list[Node], State], list[State]]
MACROS: dict[str, Macro] = {
    **dict.fromkeys(("OP_REQUIRES", "OP_REQUIRES_ASYNC"), _requires),
    **dict.fromkeys(("OP_REQUIRES_OK", "OP_REQUIRES_OK_ASYNC", "OP_REQUIRES_OK_OR_SET_PAYLOAD"), _requires_ok),
    **dict.fromkeys(("TF_RETURN_IF_ERROR", "RETURN_IF_ERROR", "TFRT_RETURN_IF_ERROR"), _return_if_error),
    **dict.fromkeys(
        ("TF_ASSIGN_OR_RETURN", "ASSIGN_OR_RETURN", "OP_REQUIRES_VALUE", "SH_ASSIGN_OR_RETURN"), _assign_or_return
    ),
    **dict.fromkeys(
        [f"{d}CHECK{end}" for d in ("", "D") for end in ("", "_EQ", "_NE", "_LT", "_LE", "_GT", "_GE")], _checks
    ),
    **dict.fromkeys(("TF_CHECK_OK", "assert", "CHECK_NOTNULL", "eigen_assert"), _checks),
}
