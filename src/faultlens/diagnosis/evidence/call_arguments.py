"""The user's own call of an op or function: how its arguments are written, and the numbers that stand there."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from faultlens.diagnosis.evidence.traced import parse
from faultlens.knowledge.op_names import plain
from faultlens.records.crash import Frame
from faultlens.records.diagnosis import Location
from faultlens.text.safe import one_line

_WRITTEN = 48  # characters of an expression that can be quoted
_VERSIONS = ("v1", "v2", "v3", "v4", "v5")
_LARGEST_EXPONENT = 128
_DEPTH = 12
_MAKES_DATASETS = frozenset({
    "batch", "bucket_by_sequence_length", "cache", "from_generator", "interleave", "map", "padded_batch", "prefetch",
    "ragged_batch", "range", "rebatch", "repeat", "shard", "shuffle", "skip", "take", "window",
})  # fmt: skip
_READERS = re.compile(r"\b(TFRecordDataset|TextLineDataset|FixedLengthRecordDataset|CsvDataset|make_csv_dataset)\(")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}

Constants = Mapping[str, object]


def call_of(name: str | None, sources: Mapping[str, str], location: Location | None) -> ast.Call | None:
    """The call on the user's line whose name is that of the op, versions and spelling aside."""
    tree = parse(sources.get(location.file, "")) if location else None
    if tree is None or location is None or not name:
        return None
    wanted = _bare(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= location.line <= (node.end_lineno or node.lineno):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if called and _bare(called) == wanted:
                return node
    return None


def dataset_call(op: str | None, sources: Mapping[str, str]) -> tuple[ast.Call, Location] | None:
    """The only call that makes this dataset: ShuffleDataset is made by shuffle(), far from where it is read."""
    bare = _bare(op) if op and "Dataset" in op else ""
    method = bare.removesuffix("dataset").removeprefix("parallel").removesuffix("andbatch")
    made_by = {bare, bare.removesuffix("dataset"), method} - {""}
    found = [
        (node, Location(file=file, line=node.lineno, function=""))
        for file, text in sources.items()
        if made_by and (tree := parse(text))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _bare(node.func.attr) in made_by
    ]
    return found[0] if len(found) == 1 else None


def called_at(frame: Frame | None, sources: Mapping[str, str]) -> str | None:
    """The function that the user's line was calling: of the failing expression if known, else the outermost."""
    tree = parse(sources.get(frame.file or "", "")) if frame else None
    if tree is None or frame is None or frame.line is None:
        return None
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
    ]
    failing = [node for node in calls if (node.lineno, node.col_offset) == (frame.line, frame.column)]
    failing = [node for node in failing if node.end_col_offset == frame.end_column] or failing
    outermost = [node for node in calls if node.lineno == frame.line] if frame.column is None else []
    chosen = failing[0] if failing else calls[0] if len(calls) == 1 else next(iter(outermost), None)
    function = chosen.func if chosen else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return None if not name or name.endswith(("Error", "Exception")) else name


def reader(sources: Mapping[str, str]) -> str | None:
    """The only kind of dataset that the sources read from files."""
    found = {name for text in sources.values() for name in _READERS.findall(text)}
    return found.pop() if len(found) == 1 else None


def declarations(tree: ast.Module) -> Iterator[ast.stmt | ast.expr]:
    """The lines that a report keeps for this: numbers of the module, and calls that make datasets."""
    yield from (node for node, _, _ in _constants(tree))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and (node.func.attr in _MAKES_DATASETS or _READERS.match(f"{node.func.attr}("))
        ):
            yield node


def written(call: ast.Call, names: Sequence[str]) -> dict[str, str]:
    """The text of each argument, under the names of the op."""
    found = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        # Public functions name them nearly as their ops do: filters is filter.
        name = next((name for name in names if keyword.arg in (name, f"{name}s", name.removesuffix("s"))), None)
        if name:
            found[name] = keyword.value
    return {name: text for name, node in found.items() if (text := text_of(node))}


def names(call: ast.Call, number: int) -> list[str]:
    """Of the arguments of an op that is not TensorFlow's: the inputs come first. Nothing for what has no short name."""
    given = [(text_of(node), node) for node in call.args]
    given += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
    simple = (ast.Name, ast.Attribute, ast.Subscript)
    keywords = {keyword.arg for keyword in call.keywords}
    return [text if isinstance(node, simple) or text in keywords else "" for text, node in given[:number]]


def in_words(call: ast.Call) -> list[str]:
    """ "shapes=[3, 4]", as it is written."""
    positional = [text_of(node) for node in call.args]
    named = [
        f"{keyword.arg}={text_of(keyword.value)}" for keyword in call.keywords if keyword.arg and text_of(keyword.value)
    ]
    return [text for text in (*positional, *named) if text]


def numbers(call: ast.Call, sources: Mapping[str, str], location: Location, variables: Constants) -> dict[str, object]:
    """The arguments that are plain numbers or lists of them, constants of the module and variables filled in."""
    tree = parse(sources.get(location.file, ""))
    known = {name: value for _, name, value in _constants(tree)} if tree else {}
    known = {**known, **variables}
    named = [(f"argument {index + 1}", node) for index, node in enumerate(call.args)]
    named += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    return {name: value for name, node in named if (value := constant(node, known)) is not None}


def constant(node: ast.expr, known: Constants, depth: int = 0) -> object | None:
    """The number or list of numbers that an expression of plain numbers is; None where it is something else."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [constant(each, known, depth + 1) for each in node.elts]
        return None if any(value is None for value in values) else values
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand, known, depth + 1)
        return -value if isinstance(value, (int, float)) else None
    if isinstance(node, ast.BinOp):
        return _computed(node, known, depth)
    return None


def _computed(node: ast.BinOp, known: Constants, depth: int) -> object | None:
    left, right = constant(node.left, known, depth + 1), constant(node.right, known, depth + 1)
    carry_out = _OPERATORS.get(type(node.op))
    if carry_out is None or not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    if isinstance(node.op, (ast.Pow, ast.LShift)) and not 0 <= right <= _LARGEST_EXPONENT:
        return None
    try:
        value: object = carry_out(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return value


def _constants(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, object]]:
    """Names of the module that are given a number once."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = constant(node.value, {})
            if value is not None:
                yield node, node.targets[0].id, value


def _bare(name: str) -> str:
    bare = plain(name)
    return bare[:-2] if bare.endswith(_VERSIONS) else bare


def text_of(node: ast.expr) -> str:
    """Nothing for what is too long to be quoted."""
    if isinstance(node, ast.Starred):
        return ""
    text = ast.unparse(node)
    return one_line(text, _WRITTEN) if len(text) <= _WRITTEN else ""
