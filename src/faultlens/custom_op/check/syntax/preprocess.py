"""What the source looks like when the macros that it defines itself are replaced, and where each piece came from."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import NamedTuple

from faultlens.custom_op.check.syntax.types import tidy

LARGEST = 2 << 20  # bytes that macros may add
DEEPEST = 6
_TOKEN = re.compile(
    r"""(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)
    |(?P<raw>R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)")
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+')
    |(?P<directive>^[ \t]*\#(?:[^\n\\/]|\\\r?\n|\\.|/(?!\*)|/\*.*?\*/)*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\d[\w.']*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)(\(([^()]*)\))?(.*)", re.DOTALL)
_UNDEF = re.compile(r"\s*#\s*undef\s+(\w+)")
# Macros of TensorFlow that give a macro each of some types: one of them stands for all.
_EACH_TYPE = re.compile(r"TF_CALL_(\w+)$")


class Macro(NamedTuple):
    parameters: tuple[str, ...] | None  # None: used without parentheses
    body: str


class Piece(NamedTuple):
    start: int  # in the new text
    original: int
    length: int  # of the original
    replaced: bool


@dataclass(frozen=True)
class Expanded:
    data: bytes
    pieces: tuple[Piece, ...]

    def original(self, offset: int, *, end: bool = False) -> int:
        """Where it is in the file; all of a replaced macro is at its call."""
        starts = [piece.start for piece in self.pieces]
        at = bisect.bisect_right(starts, offset) - 1
        if end and at > 0 and self.pieces[at].start == offset:
            at -= 1
        piece = self.pieces[max(at, 0)]
        if piece.replaced:
            return piece.original + (piece.length if end else 0)
        return min(piece.original + offset - piece.start, piece.original + piece.length)


def expand(data: bytes, leave: frozenset[str]) -> Expanded:
    """`leave`: names that have a meaning of their own here."""
    text = data.decode("latin-1")  # byte for byte
    macros: dict[str, Macro] = {}
    out: list[str] = []
    pieces: list[Piece] = []
    length = copied = added = 0

    def copy(until: int) -> None:
        nonlocal length, copied
        if until > copied:
            pieces.append(Piece(length, copied, until - copied, False))
            out.append(text[copied:until])
            length += until - copied
            copied = until

    at = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found["directive"]:
            _directive(found.group(), macros)
        elif found["name"] and found.group() not in leave:
            replaced = _replaced(text, found.end(), found.group(), macros)
            if replaced is None or added > LARGEST:
                continue
            new, end = replaced
            copy(found.start())
            added += len(new)
            new += "\n" * text.count("\n", found.start(), end)
            pieces.append(Piece(length, found.start(), end - found.start(), True))
            out.append(new)
            length += len(new)
            copied = at = end
    copy(len(text))
    return Expanded("".join(out).encode("latin-1", "replace"), tuple(pieces) or (Piece(0, 0, len(text), False),))


def _directive(line: str, macros: dict[str, Macro]) -> None:
    if found := _UNDEF.match(line):
        macros.pop(found[1], None)
    elif found := _DEFINE.match(line):
        body = re.sub(r"\\\r?\n", " ", found[4])
        body = re.sub(r"//[^\n]*|/\*.*?\*/", " ", body, flags=re.DOTALL).strip()
        parameters = tuple(part.strip() for part in found[3].split(",") if part.strip()) if found[2] else None
        if body or parameters is not None:
            macros[found[1]] = Macro(parameters, body)


def _replaced(text: str, end: int, name: str, macros: dict[str, Macro], depth: int = 0) -> tuple[str, int] | None:
    """The new text, and where the call ends."""
    macro = macros.get(name)
    each_type = _EACH_TYPE.match(name) if macro is None else None
    if depth > DEEPEST or (macro is None and each_type is None):
        return None
    if macro is not None and macro.parameters is None:
        if re.fullmatch(r"[\w.()<>-]+", macro.body) or len(macro.body) > 4000:
            return None  # constants are known by name
        return _again(macro.body, macros, depth + 1, name), end
    given = _arguments(text, end)
    if given is None:
        return None
    values, close = given
    if each_type is not None:
        inner = macros.get(values[0].strip()) if values else None
        if inner is None or not inner.parameters or len(inner.parameters) != 1:
            return None
        macro, values = inner, [_one_type(each_type[1])]
    assert macro is not None and macro.parameters is not None
    body = _substituted(macro, values)
    return (_again(body, macros, depth + 1, name), close) if len(body) < 1 << 16 else None


def _substituted(macro: Macro, values: list[str]) -> str:
    named: dict[str, str] = {}
    parameters = macro.parameters or ()
    for at, parameter in enumerate(parameters):
        if parameter == "..." or parameter.endswith("..."):
            named[parameter.removesuffix("...") or "__VA_ARGS__"] = ", ".join(values[at:])
        else:
            named[parameter] = values[at] if at < len(values) else ""

    def replace(found: re.Match[str]) -> str:
        if found["text"]:
            return found.group()
        mark, name = found["mark"] or "", found["name"]
        if name not in named:
            return found.group()
        return '"' + named[name].replace('"', "'") + '"' if mark.strip() == "#" else mark + named[name]

    body = re.sub(r"\s*##\s*", "\0", macro.body)
    body = re.sub(r"""(?P<text>"(?:[^"\\]|\\.)*")|(?P<mark>\#\s*)?(?P<name>[A-Za-z_]\w*)""", replace, body)
    return body.replace("\0", "")


def _again(body: str, macros: dict[str, Macro], depth: int, without: str) -> str:
    """Macros in what a macro gives."""
    left = {name: macro for name, macro in macros.items() if name != without}
    out, at, copied = [], 0, 0
    while found := _TOKEN.search(body, at):
        at = found.end()
        if found["name"]:
            replaced = _replaced(body, found.end(), found.group(), left, depth)
            if replaced is not None:
                out += [body[copied : found.start()], replaced[0]]
                copied = at = replaced[1]
    return "".join([*out, body[copied:]])


def _arguments(text: str, at: int) -> tuple[list[str], int] | None:
    """Of a call that begins behind the name; None where there are no parentheses."""
    opening = re.compile(r"[ \t]*\(").match(text, at)
    if opening is None:
        return None
    at = begin = opening.end()
    depth = 1
    values: list[str] = []
    signs = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'|[(){}\[\],]""", re.DOTALL)
    while found := signs.search(text, at):
        at, sign = found.end(), found.group()
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
            if not depth:
                return [*values, text[begin : found.start()].strip()], at
        elif sign == "," and depth == 1:
            values.append(text[begin : found.start()].strip())
            begin = at
    return None


def _one_type(name: str) -> str:
    if tidy(name) != name or name in ("float", "double", "int32", "int64", "half", "bool", "uint8", "int8"):
        return name
    for part, type_ in (("COMPLEX", "complex64"), ("INT", "int32"), ("string", "tstring"), ("tstring", "tstring")):
        if part in name:
            return type_
    return "float"
