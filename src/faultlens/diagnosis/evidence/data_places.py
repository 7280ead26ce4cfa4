"""Where the program reads its data from, as its message or its sources say, and the command that looks through it."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping

from faultlens.diagnosis.evidence.case import Case
from faultlens.diagnosis.evidence.traced import parse

UNKNOWN = "FOLDER"
_MOST = 3  # places in one command

_READERS = frozenset({
    "image_dataset_from_directory", "text_dataset_from_directory", "audio_dataset_from_directory",
    "timeseries_dataset_from_directory", "flow_from_directory", "TFRecordDataset", "TextLineDataset",
    "FixedLengthRecordDataset", "CsvDataset", "make_csv_dataset", "list_files", "glob", "iglob", "rglob", "listdir",
    "scandir", "walk", "read_file", "load_img", "tf_record_iterator",
})  # fmt: skip
_WILDCARD = re.compile(r"[*?\[{]")
# A file in a message: with a folder, or in quotes. Files of sources and libraries are not meant.
_FILE = re.compile(r"(?:^|[\s'\"(])((?:\w+:/)?[\w.~-]*(?:/[\w.@=+-]+)+\.\w{2,10}|(?<=['\"])[\w.-]+\.\w{2,10}(?=['\"]))")
_CODE = re.compile(r"\.(?:py|pyx|cc|cpp|h|so)$")


def scan_command(case: Case, *options: str) -> str:
    """`faultlens scan …` over the data, as far as it is known where they are."""
    return shlex.join(["faultlens", "scan", *(data_places(case) or (UNKNOWN,)), *options])


def data_places(case: Case) -> tuple[str, ...]:
    if named := _in_message(case.exception.message if case.exception else ""):
        return (named,)
    trees = [tree for text in case.crash.sources.values() if (tree := parse(text))]
    return tuple(dict.fromkeys(place for tree in trees for place in _read_by(tree)))[:_MOST]


def _in_message(message: str) -> str | None:
    return next((match[1] for match in _FILE.finditer(message) if not _CODE.search(match[1])), None)


def _read_by(tree: ast.Module) -> Iterator[str]:
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in _READERS:
            owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []  # Path("data").glob("*.png")
            given = [*node.args[:1], *(keyword.value for keyword in node.keywords), *owner]
            yield from [place for each in given if (place := _folder(_literal(each, assigned)))][:1]


def _literal(node: ast.expr, assigned: Mapping[str, ast.expr], depth: int = 4) -> str:
    """The text that a path begins with: of a string, a variable, Path(…), os.path.join(…), a / b or a list."""
    match node:
        case _ if depth == 0:
            return ""
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name) if name in assigned:
            return _literal(assigned[name], assigned, depth - 1)
        case ast.Call(args=[first, *_]):
            return _literal(first, assigned, depth - 1)
        case ast.BinOp(left=first) | ast.JoinedStr(values=[first, *_]) | ast.List(elts=[first, *_]):
            return _literal(first, assigned, depth - 1)
    return ""


def _folder(path: str) -> str:
    """Of a pattern, the folder above its first wildcard; nothing where that says nothing."""
    if wildcard := _WILDCARD.search(path):
        path = path[: wildcard.start()].rpartition("/")[0]
    return "" if path in ("/", ".") else path


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
