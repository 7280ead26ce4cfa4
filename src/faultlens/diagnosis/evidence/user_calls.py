"""The call of the user's own line that led into TensorFlow, as a user names it: "tf.constant", "Model.save", "hash"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from faultlens.diagnosis.evidence.traced import library_names, parse
from faultlens.inspection.frames import is_own
from faultlens.records.crash import Crash, Frame, Thread

_LIBRARY = re.compile(r"/(?:site|dist)-packages/(?:tensorflow|keras|tf_keras)/")
# What runs functions and ops: a user's call only where it stands in the user's line.
_RUNS = re.compile(r"/python/eager/|/gen_\w+\.py$|/iterator_ops\.py$")
# Python functions that only hand a call on.
_PASSING_FILE = re.compile(r"/tensorflow/python/(?:util|profiler)/|/traceback_utils\.py$|/dispatch\.py$")
_HANDS_ON = re.compile(r"^<|^__|^(?:_?wrapper|error_handler|op_dispatch_handler|op_wrapper|wrapped|inner|new_func)$")
_VERSIONED = re.compile(r"(?:_v\d)?(?:_with_dispatch)?$")
_MAKES_OBJECT = frozenset({"__init__", "__new__", "__call__"})
_BUILTIN = frozenset({"print", "repr", "str", "format", "hash", "len", "list", "tuple", "bool", "float", "int", "sum"})
# Public classes whose methods are called on variables of any name.
_CLASSES = (
    (re.compile(r"/keras/src/(?:models|trainers|backend/tensorflow/trainer)\b|/keras/engine/training"), "Model"),
    (re.compile(r"/checkpoint/checkpoint\.py$"), "Checkpoint"),
    (re.compile(r"/checkpoint_management\.py$"), "CheckpointManager"),
    (re.compile(r"/data/ops/(?:dataset_ops|\w+_op)\.py$"), "Dataset"),
    (re.compile(r"/lite/python/interpreter\.py$"), "Interpreter"),
    (re.compile(r"/lite/python/lite\.py$"), "TFLiteConverter"),
    (re.compile(r"/python/eager/backprop\.py$"), "GradientTape"),
)
# Functions of TensorFlow's that run the user's code: who called is told by what calls back.
_CALLS_BACK = (
    (re.compile(r"/data/ops/from_generator_op\.py$"), "Dataset.from_generator"),
    (re.compile(r"/python/ops/script_ops\.py$"), "py_function"),
)


def public_call(crash: Crash, thread: Thread | None) -> str | None:
    """The function or class of TensorFlow or Keras that the user's own line called."""
    inner, line = _below_own_line(thread)
    called = [frame for frame in inner if _LIBRARY.search(frame.file or "")]
    if not called:
        return None
    for name in _written(crash, line) if line else ():
        if told := _as_known(crash, name, called):
            return told
    public = [f for f in called if not f.function.startswith("_") and not _HANDS_ON.search(f.function)]
    named = [frame for frame in public if frame is called[0] or not _RUNS.search(frame.file or "")]
    ranked = sorted(named, key=lambda frame: bool(_PASSING_FILE.search(frame.file or "")))
    return _VERSIONED.sub("", ranked[0].function) if ranked else None


def called_back_by(thread: Thread | None) -> str | None:
    """The API through which TensorFlow runs the user's code on this thread."""
    python = [frame for frame in (thread.frames if thread else ()) if frame.kind == "python"]
    own = next((at for at, frame in enumerate(python) if is_own(frame)), len(python))
    for pattern, name in _CALLS_BACK:
        if any(pattern.search(frame.file or "") for frame in python[own:]):
            return name
    return None


def _below_own_line(thread: Thread | None) -> tuple[list[Frame], Frame | None]:
    """The Python frames that the user's innermost line called, the nearest first, and that line."""
    inner: list[Frame] = []
    for frame in (frame for frame in (thread.frames if thread else ()) if frame.kind == "python"):
        if is_own(frame):
            return inner, frame
        inner.insert(0, frame)
    return inner, None


def _written(crash: Crash, at: Frame) -> Iterator[str]:
    """The names of the functions that a line calls, as written; only the one that runs, where columns tell it."""
    lines = crash.sources.get(at.file or "", "").splitlines()
    text = lines[at.line - 1] if at.line and at.line <= len(lines) else ""
    if at.column is not None and at.end_column is not None:
        text = text.encode()[at.column : at.end_column].decode(errors="replace")
        try:
            running = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        if isinstance(running, ast.Call) and (name := _dotted(running.func)):
            yield name
    else:
        yield from dict.fromkeys(re.findall(r"([A-Za-z_][\w.]*)\(", text))


def _as_known(crash: Crash, name: str, called: Sequence[Frame]) -> str | None:
    """What is called by this name, if it led to these functions of TensorFlow's."""
    root, _, rest = name.partition(".")
    if root in _imported(crash):
        return name
    attribute = rest.rpartition(".")[2]
    functions = [_VERSIONED.sub("", frame.function) for frame in called]
    if attribute and attribute in functions:
        file = called[functions.index(attribute)].file or ""
        kind = next((kind for pattern, kind in _CLASSES if pattern.search(file)), None)
        return f"{kind}.{attribute}" if kind else attribute
    if name in _BUILTIN and called[0].function.startswith("__"):
        return name
    return name if name[:1].isupper() and called[0].function in _MAKES_OBJECT else None


def _imported(crash: Crash) -> set[str]:
    """Names under which the sources know TensorFlow, Keras and what is in them."""
    trees = (tree for text in crash.sources.values() if (tree := parse(text)))
    return {name for tree in trees for name in library_names(tree)}


def _dotted(node: ast.expr) -> str:
    """Without the arguments on the way: "tf.train.Checkpoint.save" of `tf.train.Checkpoint(model=m).save`."""
    if isinstance(node, ast.Attribute):
        value = node.value.func if isinstance(node.value, ast.Call) else node.value
        before = _dotted(value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""
