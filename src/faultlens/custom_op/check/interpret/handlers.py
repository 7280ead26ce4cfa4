"""All handlers of statements and expressions, for the walker."""

from __future__ import annotations

from faultlens.custom_op.check.interpret.calls import call, write_call
from faultlens.custom_op.check.interpret.expressions import EXPRESSIONS
from faultlens.custom_op.check.interpret.statements import STATEMENTS
from faultlens.custom_op.check.interpret.walk import Handlers

HANDLERS = Handlers(STATEMENTS, {**EXPRESSIONS, "call_expression": call}, write_call)
