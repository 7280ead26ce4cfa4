"""What a C++ source says, as a tree: nodes that know their text, their parts by name and their place."""

from __future__ import annotations

import importlib
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultlens.custom_op.check.syntax.preprocess import expand
from faultlens.errors import FaultlensError
from faultlens.records.op_finding import Span

if TYPE_CHECKING:
    import tree_sitter

# Macros whose meaning is known: they stay calls, also where a source brings its own definition of them.
KNOWN_MACROS = frozenset(
    "REGISTER_OP REGISTER_KERNEL_BUILDER OP_REQUIRES OP_REQUIRES_OK OP_REQUIRES_ASYNC OP_REQUIRES_OK_ASYNC CHECK "
    "assert TF_RETURN_IF_ERROR RETURN_IF_ERROR TF_ASSIGN_OR_RETURN ASSIGN_OR_RETURN OP_REQUIRES_VALUE".split()
)
LARGEST = 4 << 20  # bytes; what is larger was not written by a person
# Words for compilers that a parser without the preprocessor stumbles over: blanked, so that all places stay.
_ANNOTATIONS = re.compile(
    rb"\b(?:TF_|ABSL_)?(?:PT_)?(?:GUARDED_BY|EXCLUSIVE_LOCKS_REQUIRED|SHARED_LOCKS_REQUIRED|LOCKS_EXCLUDED|ACQUIRED_AFTER"
    rb"|ACQUIRED_BEFORE|EXCLUSIVE_LOCK_FUNCTION|UNLOCK_FUNCTION)\s*\([^()]*\)"
    rb"|\b__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\b__launch_bounds__\s*\([^()]*\)"
    rb"|\b(?:EIGEN_(?:STRONG_INLINE|ALWAYS_INLINE|DEVICE_FUNC|ALIGN_MAX)|(?:TF|ABSL)_(?:ATTRIBUTE_\w+|MUST_USE_RESULT"
    rb"|NO_THREAD_SAFETY_ANALYSIS|FALLTHROUGH_INTENDED)|PyMODINIT_FUNC|__restrict__|__restrict|__forceinline"
    rb"|__inline__|TF_EXPORT)\b"
)


class Source:
    """One file. Its tree is that of the text in which the macros of the file are replaced."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self._expanded = expand(data, KNOWN_MACROS)
        self.data = self._expanded.data
        self._lines = data.split(b"\n")
        self._begins = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self.root = _read(self, _ANNOTATIONS.sub(lambda found: _blank(found.group()), self.data))

    @classmethod
    def load(cls, path: Path) -> Source:
        try:
            if path.stat().st_size > LARGEST:
                raise FaultlensError(f"{path} is larger than {LARGEST >> 20} MiB.", "Name sources written by people.")
            return cls(str(path), path.read_bytes())
        except OSError as error:
            raise FaultlensError(f"Cannot read {path}: {error.strerror}.", "Name a source file.") from error

    @property
    def lines(self) -> int:
        return len(self._lines)

    def line(self, number: int) -> str:
        """Counted from 1."""
        return self._lines[number - 1].decode("utf-8", "replace") if 0 < number <= len(self._lines) else ""

    def place(self, offset: int, *, end: bool = False) -> tuple[int, int]:
        """Line and column in the file, counted from 1 and in characters."""
        original = self._expanded.original(offset, end=end)
        line = bisect_right(self._begins, original) - 1
        before = self._lines[line][: original - self._begins[line]] if line < len(self._lines) else b""
        return line + 1, len(before.decode("utf-8", "replace")) + 1

    def span(self, node: Node) -> Span:
        line, column = self.place(node.start)
        end_line, end_column = self.place(node.end, end=True)
        return Span(
            path=self.path,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            text=self.line(line).rstrip("\r"),
        )


class Node:
    """A named node of the parser's tree. `operator` is the sign of an expression that has one."""

    __slots__ = ("children", "end", "fields", "kind", "operator", "parent", "source", "start")

    def __init__(self, source: Source, raw: tree_sitter.Node, parent: Node | None) -> None:
        self.source, self.parent = source, parent
        self.kind: str = raw.type
        self.start, self.end = raw.start_byte, raw.end_byte
        self.operator = ""
        self.children: list[Node] = []
        self.fields: dict[str, list[Node]] = {}

    @property
    def text(self) -> str:
        return self.source.data[self.start : self.end].decode("utf-8", "replace")

    @property
    def line(self) -> int:
        return self.source.place(self.start)[0]

    def get(self, field: str) -> Node | None:
        found = self.fields.get(field)
        return found[0] if found else None

    def all(self, field: str) -> list[Node]:
        return self.fields.get(field, [])

    def first(self, *kinds: str) -> Node | None:
        return next((child for child in self.children if child.kind in kinds), None)

    def walk(self) -> Iterator[Node]:
        """It and all below, in the order of the text."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children[::-1]

    def find(self, *kinds: str) -> Iterator[Node]:
        stack = [self]
        while stack:  # as `walk`, which is half as fast
            node = stack.pop()
            if node.kind in kinds:
                yield node
            if node.children:
                stack += node.children[::-1]

    def above(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def __repr__(self) -> str:
        return f"<{self.kind} {self.line}: {self.text[:40]!r}>"


def arguments(node: Node) -> list[Node]:
    """Of a call, without comments."""
    given = node.get("arguments")
    return [child for child in given.children if child.kind != "comment"] if given else []


def name_of(node: Node | None) -> str:
    """The last word of a name: `a::b<int>` is "b"; of a declarator the name that it declares."""
    while node is not None:
        if node.kind in ("identifier", "field_identifier", "type_identifier", "namespace_identifier", "primitive_type"):
            return node.text
        if node.kind in ("destructor_name", "operator_name", "operator_cast"):
            return node.text.replace(" ", "")
        inner = node.get("name") or node.get("declarator") or node.get("field")
        if inner is None and node.kind in _WRAPPERS:
            inner = next((child for child in reversed(node.children) if child.kind not in _NOT_NAMES), None)
        node = inner
    return ""


_WRAPPERS = ("reference_declarator", "parenthesized_declarator", "dependent_name", "pointer_declarator",
             "attributed_declarator")  # fmt: skip
_NOT_NAMES = ("type_qualifier", "comment", "ms_pointer_modifier")


def template_arguments(node: Node | None) -> list[str]:
    """Of `flat<T>`, `a::b<float, 2>`, `x.template flat<T>`: their texts."""
    if node is None:
        return []
    for each in node.walk():
        if each.kind == "template_argument_list":
            return [" ".join(child.text.split()) for child in each.children if child.kind != "comment"]
        if each.kind in ("argument_list", "call_expression") and each is not node:
            return []
    return []


def string_of(node: Node) -> str | None:
    """The value of string literals, also of several side by side."""
    if node.kind == "string_literal":
        return "".join(_plain(child) for child in node.children)
    if node.kind == "raw_string_literal":
        content = node.first("raw_string_content")
        return content.text if content else ""
    if node.kind == "concatenated_string":
        return "".join(string_of(child) or "" for child in node.children)
    return None


def read_again(node: Node) -> Node:
    """The tree of an expression that the parser took for something else, at its place."""
    data = node.source.data
    return _read(node.source, _blank(data[: node.start]) + data[node.start : node.end] + b";")


def as_expression(node: Node) -> Node:
    """The tree of a statement that the parser took for a declaration."""
    data = node.source.data
    before = _blank(data[: max(node.start - 1, 0)]) + b"("
    return _read(node.source, before + data[node.start : node.end].rstrip(b"; \n") + b");")


def snippet(text: str, path: str = "") -> Node:
    """The tree of a text that is not in the file as such: the body of a macro."""
    return Source(path, text.encode()).root


def _plain(node: Node) -> str:
    return {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}.get(node.text, node.text)


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", text)


def _read(source: Source, data: bytes) -> Node:
    raw_root = _parser(bool(_CUDA.search(data))).parse(data).root_node
    root = Node(source, raw_root, None)
    stack: list[tuple[Any, Node]] = [(raw_root, root)]
    while stack:
        raw, node = stack.pop()
        for index, child in enumerate(raw.children):
            if not child.is_named:
                if raw.field_name_for_child(index) == "operator" or (raw.type, child.type) in _SIGNS:
                    node.operator = child.type
                continue
            made = Node(source, child, node)
            node.children.append(made)
            field = raw.field_name_for_child(index)
            if field:
                node.fields.setdefault(field, []).append(made)
            stack.append((child, made))
    return root


_CUDA = re.compile(rb"\b__(?:global|device|host|shared)__\b|<<<")
_SIGNS = {("pointer_expression", "&"), ("pointer_expression", "*"), ("lambda_default_capture", "&"),
          ("lambda_default_capture", "="), ("delete_expression", "[")}  # fmt: skip


@cache
def _parser(cuda: bool) -> tree_sitter.Parser:
    try:
        import tree_sitter

        grammar = importlib.import_module("tree_sitter_cuda" if cuda else "tree_sitter_cpp")
    except ImportError as error:
        raise FaultlensError("Reading C++ needs tree-sitter.", "pip install 'faultlens[ops]'") from error
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))
