"""Whose memory the sources look at: what they call it, which call lent it, and which objects die too early."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.sources import Use, of_text, sources_of
from faultlens.records.crash import Crash

_SHOWS = frozenset({"as_array", "frombuffer", "from_address", "cast", "string_at", "from_buffer", "from_dlpack"})
_MAKES_MEMORY = frozenset(
    {"array", "zeros", "ones", "empty", "full", "asarray", "ascontiguousarray", "create_string_buffer", "astype"}
)
_TAKES_ADDRESS = frozenset({"byref", "pointer", "addressof", "data_as", "cast", "c_void_p"})
_BUILTIN = frozenset({"print", "len", "sum", "range", "list", "float", "int", "str"})


class Lent(NamedTuple):
    """A view of memory that a foreign function returned, and still owns."""

    view: Use
    owner: Use
    again: bool  # the function is called more than once


class Assigned(NamedTuple):
    name: str
    value: ast.expr
    within: str


def lent(crash: Crash) -> Lent | None:
    sources = sources_of(crash)
    foreign = {(use.file, use.line, use.name): use for use in sources.foreign}
    for file, text in crash.sources.items():
        tree, assigned = _tree(text)
        for call, within in _calls(tree):
            view = next((use for use in sources.calls if (use.file, use.line) == (file, call.lineno)), None)
            if view is None or _last(call.func) not in _SHOWS or not call.args:
                continue
            inner = _source_call(call.args[0], within, assigned)
            owner = foreign.get((file, inner.lineno, _last(inner.func))) if inner is not None else None
            if owner is not None:
                return Lent(view._replace(name=_last(call.func)), owner, _called_again(tree, owner, within))
    return None


def variable(case: Case) -> str | None:
    """What the user calls the memory: the one variable that the running line uses, `batch` or `store.table`."""
    place = case.running
    tree, _ = _tree(case.crash.sources.get(place.file, "") if place else "")
    if place is None or tree is None:
        return None
    lines = (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body"))
    statement = next((each for each in lines if each.lineno <= place.line <= (each.end_lineno or each.lineno)), None)
    if statement is None:
        return None
    sources = sources_of(case.crash)
    imported = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    known = {(alias.asname or alias.name).partition(".")[0] for node in imported for alias in node.names}
    known |= {use.receiver for use in sources.foreign}
    counters = (node.target for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension))
    known |= {each.id for target in counters for each in ast.walk(target) if isinstance(each, ast.Name)}
    names = {name for name in _names(statement) if name.partition(".")[0] not in known | _BUILTIN}
    return names.pop() if len(names) == 1 else None


def given_away(case: Case) -> tuple[Use, str] | None:
    """A call that was handed the memory of an object which dies when the function around it returns."""
    sources, modules = sources_of(case.crash), _modules(case)
    on_stack = {frame.function for frame in case.stack if frame.kind == "python"}
    taking = {
        (use.file, use.line): use for use in sources.calls if use.foreign or (use.receiver in modules and use.receiver)
    }
    for file, text in case.crash.sources.items():
        tree, assigned = _tree(text)
        for call, within in _calls(tree):
            use = taking.get((file, call.lineno))
            if use is None or _last(call.func) != use.name or within in on_stack:
                continue
            for argument in call.args:
                if name := _dies_with(argument, within, assigned):
                    return use, name
    return None


def freed_array(crash: Crash) -> tuple[Use, str] | None:
    """The call by hand that frees memory which a NumPy array owns, and the array."""
    for use, argument, within, assigned in _freed(crash):
        source = (
            argument if _last(argument) not in {each.name for each in assigned} else _value(argument, within, assigned)
        )
        if owner := _array_of(source):
            return use, owner
    return None


def freed_copy(crash: Crash) -> tuple[Use, Use] | None:
    """The call that frees a bytes object: ctypes makes one of the result of a function declared as c_char_p."""
    foreign = {(use.file, use.line, use.name): use for use in sources_of(crash).foreign}
    for use, argument, within, assigned in _freed(crash):
        call = _source_call(argument, within, assigned)
        made = foreign.get((use.file, call.lineno, _last(call.func))) if call is not None else None
        if made is not None and made.name in _text_results(crash.sources.get(use.file, "")):
            return use, made
    return None


def _freed(crash: Crash) -> Iterator[tuple[Use, ast.expr, str, tuple[Assigned, ...]]]:
    """Calls that free memory by hand, each with its argument."""
    frees = {(use.file, use.line, use.name): use for use in sources_of(crash).frees}
    for file, text in crash.sources.items():
        tree, assigned = _tree(text)
        for call, within in _calls(tree):
            if (use := frees.get((file, call.lineno, _last(call.func)))) and call.args:
                yield use, call.args[0], within, assigned


def _value(node: ast.expr, within: str, assigned: tuple[Assigned, ...]) -> ast.expr:
    values = [each.value for each in assigned if each.name == _last(node) and each.within in (within, "<module>")]
    return values[-1] if values else node


def _array_of(node: ast.expr) -> str | None:
    """`batch` in batch.ctypes.data, batch.ctypes.data_as(…), c_void_p(batch.ctypes.data)."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and each.attr == "ctypes" and not isinstance(each.value, ast.Constant):
            return ast.unparse(each.value)
    return None


def _text_results(text: str) -> set[str]:
    """Functions whose result is declared to be text."""
    tree, _ = _tree(text)
    return {
        _last(target.value)
        for node, _ in _within(tree)
        if isinstance(node, ast.Assign) and _last(node.value) in ("c_char_p", "c_wchar_p")
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr == "restype"
    }


class Structure(NamedTuple):
    """A ctypes structure that a foreign call is given, and how it is filled."""

    name: str  # of its class
    variable: str
    numbers: tuple[int, ...]  # plain numbers that it is made of


def structure_given(crash: Crash, call: Use | None) -> Structure | None:
    tree, assigned = _tree(crash.sources.get(call.file, "") if call else "")
    classes = {node.name for node, _ in _within(tree) if isinstance(node, ast.ClassDef) and _has_fields(node)}
    for node, within in _calls(tree):
        if call is None or (node.lineno, _last(node.func)) != (call.line, call.name):
            continue
        for argument in node.args:
            address = isinstance(argument, ast.Call) and _last(argument.func) in _TAKES_ADDRESS and argument.args
            given = argument.args[0] if isinstance(argument, ast.Call) and address else argument
            made = _value(given, within, assigned)
            if isinstance(made, ast.Call) and _last(made.func) in classes:
                constants = (each.value for each in made.args if isinstance(each, ast.Constant))
                return Structure(
                    _last(made.func), ast.unparse(given), tuple(each for each in constants if isinstance(each, int))
                )
    return None


def _has_fields(node: ast.ClassDef) -> bool:
    return any(isinstance(each, ast.Assign) and _last(each.targets[0]) == "_fields_" for each in node.body)


def declarations(text: str, modules: Collection[str]) -> Iterator[int]:
    """The lines that tell what foreign calls and views are given, and how structures are laid out."""
    taking = {(use.line, use.name) for use in of_text(text).calls if use.foreign or use.receiver in modules}
    tree, _ = _tree(text)
    calls = [
        call for call, _ in _calls(tree) if _last(call.func) in _SHOWS or (call.lineno, _last(call.func)) in taking
    ]
    given = {each.id for call in calls for each in ast.walk(call) if isinstance(each, ast.Name)}
    for node, _ in _within(tree):
        if isinstance(node, ast.Assign) and any(_last(target) in given | {"_fields_"} for target in node.targets):
            yield node.lineno


@lru_cache(maxsize=8)
def _tree(text: str) -> tuple[ast.Module | None, tuple[Assigned, ...]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, ()
    found = [
        Assigned(_last(target), node.value, within)
        for node, within in _within(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    return tree, tuple(found)


def _within(tree: ast.AST | None) -> Iterator[tuple[ast.AST, str]]:
    waiting = [(tree, "<module>")] if tree is not None else []
    while waiting:
        node, within = waiting.pop(0)
        yield node, within
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else within
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]


def _calls(tree: ast.AST | None) -> Iterator[tuple[ast.Call, str]]:
    return ((node, within) for node, within in _within(tree) if isinstance(node, ast.Call))


def _source_call(node: ast.expr, within: str, assigned: tuple[Assigned, ...]) -> ast.Call | None:
    """The call that the value of an argument comes from: written there, or assigned to its variable before."""
    if isinstance(node, ast.Call):
        return _source_call(node.args[0], within, assigned) or node if node.args else node
    name = _last(node)
    values = [each.value for each in assigned if each.name == name and name and each.within in (within, "<module>")]
    called = (value for value in reversed(values) if isinstance(value, ast.Call))
    return next(called, None)


def _called_again(tree: ast.AST | None, owner: Use, within: str) -> bool:
    """At several places, in a loop, or in a function that is."""
    names = {owner.name} | ({within} if within != "<module>" else set())
    counts = {name: sum(_last(call.func) == name for call, _ in _calls(tree)) for name in names}
    loops = (
        node for node, _ in _within(tree) if isinstance(node, ast.For | ast.While | ast.ListComp | ast.GeneratorExp)
    )
    looped = any(_last(call.func) in names for loop in loops for call, _ in _calls(loop))
    return looped or any(count > 1 for count in counts.values())


def _dies_with(argument: ast.expr, within: str, assigned: tuple[Assigned, ...]) -> str | None:
    """The name of the local object, or its text where it has none, whose memory the argument is."""
    if isinstance(argument, ast.Call) and _last(argument.func) in _TAKES_ADDRESS:
        receiver = argument.func.value if isinstance(argument.func, ast.Attribute) else None
        inner = argument.args[0] if _last(argument.func) != "data_as" and argument.args else _owner_of(receiver)
        return _dies_with(inner, within, assigned) if inner is not None else None
    if isinstance(argument, ast.Call):
        made = _last(argument.func) in _MAKES_MEMORY
        return ast.unparse(argument) if made else None
    if isinstance(argument, ast.Attribute) and argument.attr in ("data", "ctypes"):
        owner = _owner_of(argument)
        return _dies_with(owner, within, assigned) if owner is not None else None
    local = within != "<module>" and isinstance(argument, ast.Name)
    values = [each.value for each in assigned if local and each.name == _last(argument) and each.within == within]
    return _last(argument) if any(isinstance(value, ast.Call | ast.BinOp) for value in values) else None


def _owner_of(node: ast.expr | None) -> ast.expr | None:
    """`batch` of batch.ctypes.data, batch.ctypes."""
    while isinstance(node, ast.Attribute) and node.attr in ("data", "ctypes"):
        node = node.value
    return node


def _names(node: ast.AST) -> Iterator[str]:
    """The values that a statement uses, not the functions that it calls."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield from _names(node.func.value)
        for child in (*node.args, *node.keywords):
            yield from _names(child)
    elif isinstance(node, ast.Attribute) and node.attr not in ("T", "ctypes", "data", "shape"):
        yield ast.unparse(node) if _is_path(node) else ""
    elif isinstance(node, ast.AugAssign):
        yield ast.unparse(node.target)
        yield from _names(node.value)
    elif isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load | ast.Del):
            yield node.id
    else:
        for child in ast.iter_child_nodes(node):
            yield from _names(child)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _modules(case: Case) -> set[str]:
    return {path.rpartition("/")[2].partition(".")[0] for path in case.custom_libraries}


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
