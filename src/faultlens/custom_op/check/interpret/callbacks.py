"""Who may call the callback of an asynchronous kernel later."""

from __future__ import annotations

import re

from faultlens.custom_op.check.interpret.call_symbols import Lambda
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import Param, Symbol
from faultlens.custom_op.check.interpret.walk import Walker


def is_callback(walker: Walker, value: Symbol) -> bool:
    return isinstance(value, Param) and value.name == walker.callback


def has_callback(walker: Walker, value: Lambda) -> bool:
    return bool(walker.callback and re.search(rf"\b{walker.callback}\b", walker.lambdas[value.place].node.text))


def hand_over(walker: Walker, values: list[Symbol], state: State) -> None:
    """An object is made of them: it may keep them, and call the callback later."""
    for value in values:
        state.escape(value)
        if is_callback(walker, value) or (isinstance(value, Lambda) and has_callback(walker, value)):
            state.callback_escaped = True
