"""What one statement does to the states that reach it, for each kind of statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from faultlens.custom_op.check.interpret import declarations, loops
from faultlens.custom_op.check.interpret.call_symbols import Status, Switched
from faultlens.custom_op.check.interpret.macros import MACROS
from faultlens.custom_op.check.interpret.state import MOST_STATES, State, join
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Symbol
from faultlens.custom_op.check.interpret.walk import Walker
from faultlens.custom_op.check.syntax.syntax import Node, arguments, as_expression, name_of

STATUSES = ("MakeShape", "BuildTensorShape", "BuildPartialTensorShape", "ReadFileToString", "GetNodeAttr",
            "LookupResource", "LookupOrCreateResource", "HandleFromInput")  # fmt: skip


def _compound(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """What was declared in it is gone behind it; so are the locks that it took."""
    before = [(dict(state.variables), dict(state.types), state.locks) for state in states]
    names = declarations.declared_in(node)
    locks = before[0][2]
    ends = walker.block(node.children, states)
    for end in ends:
        for name in names:
            variables, types, _ = before[0]
            _restore(end.variables, variables, name)
            _restore(end.types, types, name)
            end.uninitialized -= {name} if name not in variables else frozenset()
        end.locks = tuple(lock for lock in end.locks if lock in locks)
    return ends


def _restore(now: dict[str, Any], before: dict[str, Any], name: str) -> None:
    if name in before:
        now[name] = before[name]
    else:
        now.pop(name, None)


def _expression(walker: Walker, node: Node, states: list[State]) -> list[State]:
    if not node.children:
        return states
    inner = node.children[0]
    called = _streamed_to(inner)
    macro = MACROS.get(name_of(called.get("function"))) if called.kind == "call_expression" else None
    if macro is not None:
        return [end for state in states for end in macro(walker, called, arguments(called), state)]
    found = []
    dropped = _dropped(inner)
    for state in states:
        for end, value in walker.fork(state, lambda each: walker.evaluate(inner, each)):
            if dropped.kind == "call_expression" and (isinstance(value, Status) or _gives_status(walker, dropped)):
                how = name_of(dropped.get("function")) if dropped is inner else "IgnoreError"
                walker.note("ignored", dropped, end, name=how, on=value)
            if inner.kind == "throw_statement":
                continue
            found.append(end)
    return found


def _dropped(node: Node) -> Node:
    """The call of `(void)call()`, `static_cast<void>(call())` and `std::ignore = call()`."""
    kind, left = node.get("type"), node.get("left")
    if node.kind == "cast_expression" and kind is not None and kind.text == "void":
        return node.get("value") or node
    if node.kind == "assignment_expression" and left is not None and left.text in ("std::ignore", "ignore"):
        return node.get("right") or node
    if node.kind == "call_expression" and node.text.startswith("static_cast<void>"):
        return next(iter(arguments(node)), node)
    return node


def _streamed_to(node: Node) -> Node:
    """CHECK(x) of `CHECK(x) << "text"`."""
    while node.kind == "binary_expression" and node.operator == "<<" and (left := node.get("left")) is not None:
        node = left
    return node


def _gives_status(walker: Walker, call: Node) -> bool:
    function = call.get("function")
    if function is None or function.kind not in ("identifier", "qualified_identifier", "template_function"):
        return False
    found = walker.program.function(name_of(function))
    return name_of(function) in STATUSES if found is None else found.is_status


def _declaration(walker: Walker, node: Node, states: list[State]) -> list[State]:
    kind = node.get("type")
    if kind is not None and kind.kind == "type_identifier" and states and kind.text in states[0].variables:
        return _misread(walker, node, states)
    return [
        end for state in states for end, _ in walker.fork(state, lambda each: declarations.declare(walker, node, each))
    ]


def _misread(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """`y(i) = 0;` looks like a pure virtual function, `y(i) = x;` like a declaration."""
    again = next(as_expression(node).find("expression_statement"), None)
    return _expression(walker, again, states) if again is not None and again.children else states


def _return(walker: Walker, node: Node, states: list[State]) -> list[State]:
    value = node.children[0] if node.children else None
    for state in states:
        for end, returned in walker.fork(state, lambda each: walker.evaluate(value, each)):
            if walker.at_root or walker.function.name == "lambda":  # whoever called has it now
                end.escape(returned)
            walker.leave(end, returned, "return", node)
    return []


def _if(walker: Walker, node: Node, states: list[State]) -> list[State]:
    clause, then, other = node.get("condition"), node.get("consequence"), node.get("alternative")
    ends: list[State] = []
    for state in states:
        for asked, condition in walker.fork(state, lambda each: _condition(walker, clause, each)):
            for holds, branch in ((True, then), (False, other)):
                taken = asked.copy()
                taken.assume(condition, holds)
                taken.branches = (*taken.branches, branch or node)
                if taken.feasible:
                    ends += walker.statement(branch, [taken]) if branch is not None else [taken]
    return ends


def _condition(walker: Walker, clause: Node | None, state: State) -> Symbol:
    if clause is None:
        return UNKNOWN
    initializer = clause.get("initializer")
    if initializer is not None and initializer.children:
        declarations.declare(walker, initializer.children[0], state)
    value = clause.get("value") or (clause if clause.kind != "condition_clause" else None)
    if value is None:
        return UNKNOWN
    if value.kind == "declaration":
        return declarations.declare(walker, value, state)
    return walker.evaluate(value, state)


def _else(walker: Walker, node: Node, states: list[State]) -> list[State]:
    return walker.block(node.children, states)


def _switch(walker: Walker, node: Node, states: list[State]) -> list[State]:
    body, clause = node.get("body"), node.get("condition")
    cases = [child for child in body.children if child.kind == "case_statement"] if body else []
    frame = walker.frames[-1]
    frame.breaks.append([])
    falling: list[State] = []
    begins: list[State] = []
    for state in states:
        for asked, value in walker.fork(state, lambda each: _condition(walker, clause, each)):
            asked.assume(Switched(value), True)
            begins.append(asked)
    for case in cases:
        inner = [child for child in case.children if child not in case.all("value")]
        entered = [replace(begin.copy(), branches=(*begin.branches, case)) for begin in begins]
        falling = walker.block(inner, join(entered + falling, MOST_STATES))
    ends = falling + frame.breaks.pop()
    has_default = any(case.get("value") is None for case in cases)
    return ends if has_default or _all_named(walker, cases) else ends + begins


def _all_named(walker: Walker, cases: list[Node]) -> bool:
    """Every value of an enum has its case."""
    named = {name_of(value) for case in cases if (value := case.get("value")) is not None}
    return any(values <= named for values in walker.program.enums)


def _break(walker: Walker, _: Node, states: list[State]) -> list[State]:
    if walker.frames[-1].breaks:
        walker.frames[-1].breaks[-1].extend(states)
    return []


def _continue(walker: Walker, _: Node, states: list[State]) -> list[State]:
    if walker.frames[-1].continues:
        walker.frames[-1].continues[-1].extend(states)
    return []


def _try(walker: Walker, node: Node, states: list[State]) -> list[State]:
    body = node.get("body")
    caught = [state.copy() for state in states]
    walker.tries += 1
    try:
        ends = walker.statement(body, states) if body else states
    finally:
        walker.tries -= 1
    for clause in node.children:
        handler = clause.get("body") if clause.kind == "catch_clause" else None
        if handler is not None:
            ends = ends + walker.statement(handler, [state.copy() for state in caught])
    return ends


def _throw(walker: Walker, node: Node, states: list[State]) -> list[State]:
    for state in states:
        walker.note("throw", node, state, name="throw")
    return []


def _either(walker: Walker, node: Node, states: list[State]) -> list[State]:
    """#if … #else … #endif: one of them is compiled."""
    other = node.get("alternative")
    skipped = (*node.all("name"), *node.all("condition"), *node.all("alternative"))
    own = [child for child in node.children if child not in skipped]
    ends = walker.block(own, [state.copy() for state in states])
    return ends + (walker.statement(other, states) if other is not None else states if not own else [])


STATEMENTS: dict[str, Callable[[Walker, Node, list[State]], list[State]]] = {
    "compound_statement": _compound,
    "expression_statement": _expression,
    "declaration": _declaration,
    "function_definition": _misread,
    "return_statement": _return,
    "if_statement": _if,
    "else_clause": _else,
    "switch_statement": _switch,
    "break_statement": _break,
    "continue_statement": _continue,
    "for_statement": loops.counted,
    "for_range_loop": loops.ranged,
    "while_statement": loops.repeated,
    "do_statement": loops.repeated,
    "try_statement": _try,
    "throw_statement": _throw,
    "labeled_statement": _else,
    "preproc_if": _either,
    "preproc_ifdef": _either,
    "preproc_else": _else,
    "preproc_elif": _either,
}
