"""Breaks the long lines of a script at the commas of its calls, as people do. The program stays the same."""

from __future__ import annotations

import ast
import io
import tokenize

WIDTH = 100
_OPENING, _CLOSING = "([{", ")]}"


def wrapped(text: str) -> str:
    lines = [part for line in text.splitlines() for part in _broken(line)]
    result = "\n".join(lines) + "\n"
    try:
        return result if ast.dump(ast.parse(result)) == ast.dump(ast.parse(text)) else text
    except (SyntaxError, ValueError, RecursionError):
        return text


def _broken(line: str) -> list[str]:
    if len(line) <= WIDTH or line.lstrip().startswith("#"):
        return [line]
    brackets = _brackets(line)
    if brackets is None:
        return [line]
    start, end, commas = brackets
    indent = line[: len(line) - len(line.lstrip())]
    parts = [line[left + 1 : right].strip() for left, right in zip([start, *commas], [*commas, end], strict=True)]
    one_element = line[start] == "(" and len(commas) == 1 and not parts[-1]  # "(x,)" must keep its comma
    inner = [part for part in parts if part]
    if not inner:
        return [line]
    packed = _packed(inner, indent + "    ", trailing=one_element or bool(commas))
    return [line[: start + 1], *(each for part in packed for each in _broken(part)), indent + line[end:]]


def _packed(parts: list[str], indent: str, trailing: bool) -> list[str]:
    """As many parts to a line as fit."""
    lines: list[str] = []
    for index, part in enumerate(parts):
        comma = "," if trailing or index + 1 < len(parts) else ""
        if lines and len(lines[-1]) + len(part) + 2 <= WIDTH and len(lines[-1]) <= WIDTH:
            lines[-1] += f" {part}{comma}"
        else:
            lines.append(f"{indent}{part}{comma}")
    return lines


def _brackets(line: str) -> tuple[int, int, list[int]] | None:
    """The widest pair of brackets that stands in no other, and the commas directly in it."""
    depth, start, commas = 0, 0, list[int]()
    best: tuple[int, int, list[int]] | None = None
    for token in _operators(line):
        position = token.start[1]
        if token.string in _OPENING:
            if depth == 0:
                start, commas = position, []
            depth += 1
        elif token.string in _CLOSING:
            depth -= 1
            if depth == 0 and (best is None or position - start > best[1] - best[0]):
                best = start, position, commas
        elif token.string == "," and depth == 1:
            commas.append(position)
    return best


def _operators(line: str) -> list[tokenize.TokenInfo]:
    """Tokens up to where the line cannot be understood by itself: the head of a block, a part of a call."""
    found: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type == tokenize.OP:
                found.append(token)
    except (tokenize.TokenError, SyntaxError):
        pass
    return found
