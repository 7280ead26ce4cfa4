"""A source file reduced to what a report keeps of it: the lines around frames, and the statements that rules look at.

Every line keeps its number, and the text can still be parsed. Away from the frames, strings are emptied and comments
left out."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from faultlens.diagnosis.evidence.traced import parse
from faultlens.diagnosis.evidence.wordings import ANY

LINES_BEFORE = 3
LINES_AFTER = 1


class _Span(NamedTuple):
    """A stretch of the text that is replaced. Lines are counted from 1, columns in bytes from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    instead: str


def around(lines: Iterable[int]) -> set[int]:
    return {near for line in lines for near in range(line - LINES_BEFORE, line + LINES_AFTER + 1)}


def condensed(text: str, near: Collection[int], telling: Collection[int]) -> str:
    """`near`: the lines that are kept as they are; `telling`: those whose statements are kept."""
    tree = parse(text)
    if tree is not None:
        try:
            kept = _without(
                text, [*_statements(tree.body, text, {*near, *telling}, may_be_empty=True), *_strings(tree, near)], near
            )
        except (tokenize.TokenError, SyntaxError, RecursionError):
            kept = ""
        if kept and parse(kept) is not None:
            return kept
    lines = (line if number in near else "" for number, line in enumerate(text.split("\n"), 1))
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------------------------------- statements


def _statements(block: list[ast.stmt], text: str, wanted: set[int], may_be_empty: bool = False) -> Iterator[_Span]:
    """Those that go."""
    lines = text.encode().split(b"\n")
    kept = [_is_wanted(statement, wanted) for statement in block]
    for place, (statement, stays) in enumerate(zip(block, kept, strict=True)):
        if stays:
            for inner in _blocks(statement):
                yield from _statements(inner, text, wanted)
            continue
        first, end, end_column = _first_line(statement), statement.end_lineno or 0, statement.end_col_offset or 0
        before, after = lines[first - 1][: statement.col_offset], lines[end - 1][end_column:].partition(b"#")[0]
        shares = bool(before.strip() or after.strip())  # its line with others
        if shares and end > first:
            continue  # stays: what follows it on its last line could not stand alone
        alone = place == 0 and not any(kept) and not may_be_empty
        yield _Span(first, statement.col_offset, end, end_column, "pass" if shares or alone else "")


def _is_wanted(statement: ast.stmt, wanted: set[int]) -> bool:
    blocks = _blocks(statement)
    last = min((_first_line(inner[0]) for inner in blocks), default=(statement.end_lineno or 0) + 1) - 1
    own = range(_first_line(statement), max(last, statement.lineno) + 1)
    return any(line in wanted for line in own) or any(_is_wanted(each, wanted) for inner in blocks for each in inner)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    parts = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    found = [getattr(part, name, None) for part in parts for name in ("body", "orelse", "finalbody")]
    return [block for block in found if isinstance(block, list) and block]


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


# ------------------------------------------------------------------------------------ strings, comments


def _strings(tree: ast.Module, near: Collection[int]) -> Iterator[_Span]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            end = node.end_lineno or node.lineno
            is_near = all(line in near for line in range(node.lineno, end + 1))
            if not is_near and not (isinstance(node, ast.Constant) and ANY.search(str(node.value))):
                instead = _emptied(node, end - node.lineno)
                yield _Span(node.lineno, node.col_offset, end, node.end_col_offset or 0, instead)
        else:
            waiting += ast.iter_child_nodes(node)


def _emptied(node: ast.JoinedStr | ast.Constant, line_ends: int) -> str:
    """An empty string over as many lines; of a formatted one, the expressions in it are kept if they call something."""
    if isinstance(node, ast.JoinedStr):
        inner = [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
        if any(isinstance(each, ast.Call) for value in inner for each in ast.walk(value)):
            return f"({', '.join(map(_unparsed, inner))},{chr(10) * line_ends})"
    prefix = "b" if isinstance(node, ast.Constant) and isinstance(node.value, bytes) else ""
    return prefix + ('"""' + "\n" * line_ends + '"""' if line_ends else '""')


def _unparsed(node: ast.expr) -> str:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str | bytes):
            each.value = type(each.value)()
    return ast.unparse(node)


def _comments(text: str) -> Iterator[tuple[int, int]]:
    """Line and column."""
    lines = text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            yield line, len(lines[line - 1][:column].encode())


def _without(text: str, spans: list[_Span], near: Collection[int]) -> str:
    lines = text.encode().split(b"\n")
    comments = [
        _Span(line, column, line, len(lines[line - 1]), "") for line, column in _comments(text) if line not in near
    ]
    outer: list[_Span] = []
    for span in sorted(
        [*spans, *comments], key=lambda each: (each.line, each.column, -each.end_line, -each.end_column)
    ):
        if not outer or (span.line, span.column) >= (outer[-1].end_line, outer[-1].end_column):
            outer.append(span)  # else it lies in one that goes as a whole
    for span in reversed(outer):
        parts = span.instead.encode().split(b"\n")
        parts += [b""] * (span.end_line - span.line + 1 - len(parts))
        parts[0] = lines[span.line - 1][: span.column] + parts[0]
        parts[-1] += lines[span.end_line - 1][span.end_column :]
        lines[span.line - 1 : span.end_line] = parts
    return b"\n".join(line.rstrip() for line in lines).decode().rstrip() + "\n"
