"""What the user's sources say where the stack names no op: functions compiled as a whole, and configuration calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from faultlens.inspection.frames import short_function, without_dying
from faultlens.inspection.owners import owner_of
from faultlens.records.crash import Crash, Frame, Thread

_CALLS_SHOWN = 4
_RUNS_COMPILED = re.compile(
    r"^(?:void )?(?:xla|mlir|llvm|stream_executor)::|::Xla\w*(?:Launch|Compil)|grappler::|\w+Pass::Run"
)
_CALLS_TRACED = re.compile(r"/tensorflow/python/eager/(?:polymorphic_function/|def_function)")
_CONFIGURING = re.compile(r"\bTFE_NewContext\b|\bTF_NewSession\b|DeviceFactory::")
_CONFIG = re.compile(r"\bconfig\b|ConfigProto|SessionOptions")
_PACKAGE = re.compile(r"^(?:tensorflow|keras|tf_keras)\b")
_USUAL_NAMES = frozenset({"tf", "tensorflow", "keras", "tnp", "np", "K"})


class Traced(NamedTuple):
    """A function that TensorFlow traces and compiles as a whole."""

    name: str
    variables: tuple[str, ...]  # under which it is called as well
    calls: tuple[str, ...]  # of library functions in its body, as written
    xla: bool


def compiled_function(crash: Crash, at: Frame | None, frames: Iterable[Frame]) -> str | None:
    """The compiled function that was called, with the library functions in it: ops are fused and have no names left."""
    if not any(frame.kind == "native" and _RUNS_COMPILED.search(frame.function) for frame in frames):
        return None
    return _called(crash, at)


def called_function(crash: Crash, thread: Thread | None, at: Frame | None) -> str | None:
    """The traced function that was called, where nothing tells which op of it was at work."""
    frames = thread.frames if thread else ()
    calls = any(frame.kind == "python" and _CALLS_TRACED.search(frame.file or "") for frame in frames)
    return _called(crash, at) if calls else None


def _called(crash: Crash, at: Frame | None) -> str | None:
    found = [function for text in crash.sources.values() for function in traced_functions(text)]
    line = _line_of(crash, at)
    called = [f for f in found if any(re.search(rf"\b{re.escape(name)}\b", line) for name in (f.name, *f.variables))]
    chosen = next(iter(called or [f for f in found if f.xla] or found), None)
    if chosen is None:
        return None
    return f"{chosen.name} ({', '.join(chosen.calls[-_CALLS_SHOWN:])})" if chosen.calls else chosen.name


def configured(crash: Crash, frames: tuple[Frame, ...]) -> str | None:
    """The configuration call whose value a failing start of the runtime works with, else the class that failed."""
    if not any(frame.kind == "native" and _CONFIGURING.search(frame.function) for frame in frames):
        return None
    culprit = next((frame for frame in without_dying(frames) if owner_of(frame) == "tensorflow"), None)
    failed = short_function(culprit.function).split("::")[-1].replace("<…>", "") if culprit else ""
    calls = [name for text in crash.sources.values() for name in _configuration_calls(text)]
    words = set(re.findall(r"[a-z]{4,}", re.sub(r"([A-Z])", r" \1", failed).lower()))
    related = [name for name in calls if any(word in name for word in words)]
    return next(reversed(related or calls), failed or None)


def traced_functions(text: str) -> Iterator[Traced]:
    tree = parse(text)
    if tree is None:
        return
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    wrapped: dict[str, tuple[list[str], bool]] = {}
    modules = _USUAL_NAMES | set(library_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if _is_tracer(decorator):
                    wrapped.setdefault(node.name, ([], _asks_for_xla(decorator)))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_tracer(node.value):
            for argument in node.value.args[:1]:
                variables = [target.id for target in node.targets if isinstance(target, ast.Name)]
                wrapped.setdefault(_name(argument), ([], _asks_for_xla(node.value)))[0].extend(variables)
    for name, (variables, xla) in wrapped.items():
        body = functions.get(name)
        calls = tuple(name for _, name in _library_calls(body, modules)) if body else ()
        yield Traced(name, tuple(variables), calls, xla)


def declarations(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Functions that are traced with the calls in them, and configuration calls."""
    wrapped, modules = set(), _USUAL_NAMES | set(library_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_tracer(node.value):
            yield node
            wrapped |= {_name(argument) for argument in node.value.args[:1]}
        elif isinstance(node, ast.Call) and _CONFIG.search(_dotted(node.func)):
            yield node
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            traced = [each for each in node.decorator_list if _is_tracer(each)]
            yield from traced
            if traced or node.name in wrapped:
                yield node
                yield from (call for call, _ in _library_calls(node, modules))


def parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def library_names(tree: ast.AST) -> Iterator[str]:
    """Names under which a source knows TensorFlow, Keras and what is in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known = (alias for alias in node.names if _PACKAGE.match(alias.name))
            yield from (alias.asname or alias.name.partition(".")[0] for alias in known)
        elif isinstance(node, ast.ImportFrom) and _PACKAGE.match(node.module or ""):
            yield from (alias.asname or alias.name for alias in node.names)


def _is_tracer(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    return bool(re.search(r"(?:^|\.)(?:function|jit)$", _dotted(target)))


def _asks_for_xla(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(
        keyword.arg in ("jit_compile", "experimental_compile")
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value
        for keyword in node.keywords
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else "lambda"


def _library_calls(body: ast.AST, modules: Collection[str]) -> Iterator[tuple[ast.Call, str]]:
    """Dotted calls on a module ("tf.image.rot90"), without the module: "image.rot90"."""
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            module, _, name = _dotted(node.func).partition(".")
            if module in modules and name and not name.startswith(("function", "constant")):
                yield node, name.removeprefix("raw_ops.")


def _configuration_calls(text: str) -> Iterator[str]:
    tree = parse(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
            called = name.rpartition(".")[2]
            if _CONFIG.search(name) and not called.startswith(("get_", "list_")):
                yield called


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _line_of(crash: Crash, at: Frame | None) -> str:
    lines = crash.sources.get((at.file if at else None) or "", "").splitlines()
    return lines[at.line - 1] if at and at.line and at.line <= len(lines) else ""
