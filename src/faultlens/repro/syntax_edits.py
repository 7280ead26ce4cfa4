"""The ways in which a program may become smaller: statements go, blocks and calls give way, expressions get simpler.

Each generator looks at a tree and yields edits, to be carried out on a copy of it. None has to keep the meaning."""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Iterator
from typing import Any

Edit = Callable[[ast.Module], bool]  # changes the tree; False: there is nothing to change after all

_MAX_INLINED = 12  # statements of a function that is put in the place of its call
# Not those whose results may be longer than what they are written as.
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_MAY_BE_SIMPLER = (ast.expr, ast.keyword, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


# ---------------------------------------------------------------------------------------- statements


def _bodies(tree: ast.Module) -> list[list[ast.stmt]]:
    """All lists of statements, the outer ones first."""
    found = []
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                found.append(value)
    return found


def without_statements(tree: ast.Module) -> Iterator[Edit]:
    """Large chunks first, from the end: what follows the crash has no part in it."""
    for index, body in enumerate(_bodies(tree)):
        chunk = len(body)
        while chunk:
            for start in range(len(body) - chunk, -1, -chunk):
                yield _removal(index, start, chunk)
            chunk //= 2


def _removal(index: int, start: int, count: int) -> Edit:
    def edit(tree: ast.Module) -> bool:
        body = _bodies(tree)[index]
        del body[start : start + count]
        if not body and body is not tree.body:
            body.append(ast.Pass())
        return True

    return edit


def unwrapped(tree: ast.Module) -> Iterator[Edit]:
    """Blocks give way to what is in them."""
    for index, body in enumerate(_bodies(tree)):
        for position, statement in enumerate(body):
            for replacement in range(len(_insides(statement))):
                yield _unwrapping(index, position, replacement)


def _insides(statement: ast.stmt) -> list[list[ast.stmt]]:
    """What may stand instead of a compound statement, the simplest first."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.body, *([*setting, *statement.body] for setting in _rounds(statement))]
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.body, statement.orelse] if statement.orelse else [statement.body]
    if isinstance(statement, ast.With):
        entered = [
            ast.Assign([item.optional_vars], item.context_expr) if item.optional_vars else ast.Expr(item.context_expr)
            for item in statement.items
        ]
        return [statement.body, [*entered, *statement.body]]
    if isinstance(statement, ast.Try):
        return [statement.body, statement.body + statement.finalbody]
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(statement.value, ast.Call):
        return [[ast.Expr(statement.value)]]
    if isinstance(statement, ast.AnnAssign) and statement.value:
        return [[ast.Assign([statement.target], statement.value)]]
    return []


def _rounds(loop: ast.For | ast.AsyncFor) -> list[list[ast.stmt]]:
    """What sets the variables of a loop for one round: any element of a literal, else the first one."""
    target, over = loop.target, loop.iter
    if isinstance(over, (ast.List, ast.Tuple)):
        return [[ast.Assign([target], each)] for each in reversed(over.elts)]
    items = _dictionary_of_items(over)
    if items and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        key_name, value_name = target.elts
        entries = zip(items.keys, items.values, strict=True)
        return [[ast.Assign([key_name], key), ast.Assign([value_name], value)] for key, value in entries if key]
    beginning = ast.Call(ast.Name("next", ast.Load()), [ast.Call(ast.Name("iter", ast.Load()), [over], [])], [])
    return [[ast.Assign([target], beginning)]]


def _dictionary_of_items(node: ast.expr) -> ast.Dict | None:
    """The literal in `{…}.items()`."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "items" and isinstance(function.value, ast.Dict):
        return function.value
    return None


def _unwrapping(index: int, position: int, replacement: int) -> Edit:
    def edit(tree: ast.Module) -> bool:
        body = _bodies(tree)[index]
        inside = _insides(body[position])[replacement]
        loose = [each for each in inside if not isinstance(each, (ast.Break, ast.Continue))]
        body[position : position + 1] = loose or [ast.Pass()]
        return True

    return edit


# ------------------------------------------------------------------------------------------- inlining


def inlined(tree: ast.Module) -> Iterator[Edit]:
    """Functions go where they are called, values where their names are used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield _inlining(node.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield _substitution(node.targets[0].id)


def _inlining(name: str) -> Edit:
    """`x = f(a)` becomes the body of f with its parameters set; for all calls of f, and f itself goes."""

    def edit(tree: ast.Module) -> bool:
        definitions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        calls = [node for node in ast.walk(tree) if _is_call_of(node, name)]
        uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
        if len(definitions) != 1 or len(uses) != len(calls) or not calls or definitions[0].decorator_list:
            return False
        definition = definitions[0]
        if len(definition.body) > _MAX_INLINED or any(_is_call_of(node, name) for node in ast.walk(definition)):
            return False
        returned = definition.body[-1]
        if any(isinstance(node, ast.Return) and node is not returned for node in ast.walk(definition)):
            return False
        for body in _bodies(tree):
            for position in reversed(range(len(body))):
                _inline_in(body, position, definition)
            body[:] = [each for each in body if each is not definition] or [ast.Pass()]
        return not any(_is_call_of(node, name) for node in ast.walk(tree))

    return edit


def _inline_in(body: list[ast.stmt], position: int, definition: ast.FunctionDef) -> None:
    statement = body[position]
    own = [statement] if not is_compound(statement) else _headers(statement)
    calls = [node for part in own for node in ast.walk(part) if _is_call_of(node, definition.name)]
    if statement is definition or len(calls) != 1:
        return
    call = calls[0]
    assert isinstance(call, ast.Call)
    given = _given(definition, call)
    if given is None:
        return
    inner = copy.deepcopy(definition.body)
    setting = [assignment for name, value in given.items() for assignment in _put_in(inner, name, value)]
    result: ast.expr = ast.Constant(None)
    if inner and isinstance(inner[-1], ast.Return):
        result = inner.pop().value or result  # type: ignore[attr-defined]
    _Replacing(call, result).visit(statement)
    alone = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    body[position : position + 1] = [*setting, *inner, *([] if alone else [statement])]


def _put_in(body: list[ast.stmt], name: str, value: ast.expr) -> list[ast.stmt]:
    """A parameter that is read once, or has a short value, is replaced by it; others are assigned before the body."""
    if isinstance(value, ast.Name) and value.id == name:
        return []
    names = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Name) and node.id == name]
    if any(not _is_load(node) for node in names) or (len(names) > 1 and not _is_short(value)):
        return [ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value))]
    for read in names:
        for each in body:
            _Replacing(read, copy.deepcopy(value)).visit(each)
    return []


def _given(definition: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """The values of the parameters; None for calls that are not simple."""
    arguments = definition.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg or arguments.kwarg or len(call.args) > len(names):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    last = names[len(names) - len(arguments.defaults) :]
    values: dict[str, ast.expr] = dict(zip(last, arguments.defaults, strict=True))
    only_by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    values |= {each.arg: value for each, value in only_by_name if value}
    values |= dict(zip(names, call.args, strict=False))
    values |= {each.arg: each.value for each in call.keywords if each.arg}
    wanted = [*names, *(each.arg for each in arguments.kwonlyargs)]
    return {name: values[name] for name in wanted} if set(values) == set(wanted) else None


def _substitution(name: str) -> Edit:
    """`n = 3` goes, and 3 stands where n was read."""

    def edit(tree: ast.Module) -> bool:
        stores = [
            node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name and not _is_load(node)
        ]
        reads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name and _is_load(node)]
        if len(stores) != 1 or any(isinstance(node, ast.arg) and node.arg == name for node in ast.walk(tree)):
            return False
        for body in _bodies(tree):
            for position, statement in enumerate(body):
                if isinstance(statement, ast.Assign) and statement.targets == [stores[0]]:
                    if len(reads) > 1 and not _is_short(statement.value):
                        return False
                    value = statement.value
                    body[position : position + 1] = [] if len(body) > 1 or body is tree.body else [ast.Pass()]
                    for read in reads:
                        _Replacing(read, copy.deepcopy(value)).visit(tree)
                    return True
        return False

    return edit


class _Replacing(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().generic_visit(node)


def _is_call_of(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_short(value: ast.expr) -> bool:
    return len(list(ast.walk(value))) <= 4


def is_compound(statement: ast.stmt) -> bool:
    return any(
        isinstance(value, list) and value and isinstance(value[0], ast.stmt) for _, value in ast.iter_fields(statement)
    )


def _headers(statement: ast.stmt) -> list[ast.AST]:
    """What a compound statement evaluates once, before its body."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, ast.If):
        return [statement.test]
    return [*statement.items] if isinstance(statement, ast.With) else []


# ---------------------------------------------------------------------------------------- expressions


def simpler_expressions(tree: ast.Module) -> Iterator[Edit]:
    for number, node in enumerate(ast.walk(tree)):
        for choice in range(_choices(node)):
            yield _simplification(number, choice)


def _choices(node: ast.AST) -> int:
    return len(_alternatives(node)) if isinstance(node, _MAY_BE_SIMPLER) else 0


def _alternatives(node: ast.AST) -> list[Callable[[], ast.AST | None]]:
    """Ways to change one node: each returns what stands in its place, None when it was changed itself."""
    if isinstance(node, ast.Constant):
        return [_instead(ast.Constant(value)) for value in _simpler_constants(node.value)]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [*_halves(node.elts), *(_deletion(node.elts, index) for index in reversed(range(len(node.elts))))]
    if isinstance(node, ast.Dict):
        return [_deletion(node.keys, index, node.values) for index in reversed(range(len(node.keys)))]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [_deletion(node.decorator_list, index) for index in range(len(node.decorator_list))]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [_deletion(node.names, index) for index in reversed(range(len(node.names))) if len(node.names) > 1]
    hoisted: list[Callable[[], ast.AST | None]] = [_instead(part) for part in (*_parts(node), *_result(node))]
    if isinstance(node, ast.Call):
        hoisted += [_deletion(node.keywords, index) for index in reversed(range(len(node.keywords)))]
        hoisted += [_deletion(node.args, index) for index in reversed(range(len(node.args)))]
    return hoisted


def _parts(node: ast.AST) -> list[ast.expr]:
    """What may stand instead of an expression: what it is made of."""
    if isinstance(node, ast.Call):
        parts = [*node.args, *(each.value for each in node.keywords)]
        return [part for part in parts if not isinstance(part, ast.Starred)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Subscript):
        inside = {ast.Dict: "values", ast.List: "elts", ast.Tuple: "elts"}.get(type(node.value))
        return [*(getattr(node.value, inside) if inside else ()), node.value]
    if isinstance(node, ast.Starred):
        return [node.value]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [node.generators[0].iter]
    return [ast.Constant("")] if isinstance(node, ast.JoinedStr) else []


def _result(node: ast.AST) -> list[ast.expr]:
    """What a calculation with numbers comes to: "2 - 3" is -1."""
    operation = _OPERATIONS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if operation is None or not isinstance(node, ast.BinOp):
        return []
    numbers = [each.value for each in (node.left, node.right) if isinstance(each, ast.Constant)]
    if len(numbers) < 2 or not all(type(number) in (int, float) for number in numbers):
        return []
    try:
        return [ast.Constant(operation(*numbers))]
    except ArithmeticError:
        return []


def _instead(node: ast.AST) -> Callable[[], ast.AST]:
    return lambda: node


def _deletion(items: list[Any], index: int, other: list[Any] | None = None) -> Callable[[], None]:
    def delete() -> None:
        del items[index]
        if other is not None:
            del other[index]

    return delete


def _halves(items: list[Any]) -> list[Callable[[], None]]:
    def keep(start: int, stop: int) -> Callable[[], None]:
        def cut() -> None:
            items[:] = items[start:stop]

        return cut

    middle = len(items) // 2
    return [keep(0, 0), keep(0, middle), keep(middle, len(items))] if len(items) > 3 else []


def _simplification(number: int, choice: int) -> Edit:
    def edit(tree: ast.Module) -> bool:
        node = next((node for index, node in enumerate(ast.walk(tree)) if index == number), None)
        if node is None or choice >= _choices(node):
            return False
        new = _alternatives(node)[choice]()
        if new is not None:
            _Replacing(node, new).visit(tree)
        return True

    return edit


def _simpler_constants(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None or value is Ellipsis:
        return []
    if isinstance(value, int):
        half = value // 2 if value > 0 else -(-value // 2)
        return [each for each in dict.fromkeys((0, 1, 2, half)) if abs(each) < abs(value)]
    if isinstance(value, float):
        return [number for number in (0.0, 1.0) if value not in (0.0, 1.0)]
    return [type(value)()] if value and isinstance(value, (str, bytes)) else []
