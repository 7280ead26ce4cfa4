"""Where TensorFlow tells what we want to know (releases 2.12 to 2.21)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from .guard import Guard
from .hooks import Hook
from .lines import Lines, Place, place_of_function
from .progress import Progress
from .tally import Tally

PYTHON = "tensorflow.python"


def tensorflow_hooks(
    lines: Lines, progress: Progress, tally: Tally, guard: Guard, node_recorder: Callable[..., Any]
) -> Iterator[Hook]:
    """`node_recorder` is made in C."""
    tracing = _Tracing(lines, progress, tally)
    saving = guarded_saving(progress, guard)
    functions = f"{PYTHON}.eager.polymorphic_function"
    yield Hook(f"{PYTHON}.framework.func_graph", "func_graph_from_py_func", guard(tracing.begin), guard(tracing.end))
    # A function of one line that is called for every node, and never the one that raises an exception.
    record = "Graph._record_op_seen_by_control_dependencies"
    recorder = lambda original: node_recorder(original, lines.owner, lines.unknown)
    yield Hook(f"{PYTHON}.framework.ops", record, replace=recorder)
    yield Hook(f"{PYTHON}.autograph.impl.api", "_convert_actual", after=guard(_converted(lines)))
    yield Hook(f"{functions}.atomic_function", "from_func_graph", guard(tracing.becomes_function))
    yield Hook(  # until 2.12
        f"{functions}.monomorphic_function", "_EagerDefinedFunction.__init__", guard(tracing.becomes_function_2_12)
    )
    yield Hook(f"{PYTHON}.client.session", "BaseSession._extend_graph", guard(lambda self: lines.write(self._graph)))
    made_variable = guard(lambda *_, **__: tally.made_variable(lines.running()))
    yield Hook(f"{PYTHON}.ops.resource_variable_ops", "ResourceVariable._init_from_args", made_variable)
    yield Hook(f"{functions}.polymorphic_function", "Function._call", guard(_called(lines, progress)))
    taking = _Taking(lines, progress)
    yield Hook(
        f"{PYTHON}.data.ops.iterator_ops", "OwnedIterator._next_internal", guard(taking.begin), guard(taking.end)
    )
    yield saving(f"{PYTHON}.checkpoint.checkpoint", "TrackableSaver.save")
    yield saving(f"{PYTHON}.saved_model.save", "save_and_return_nodes")


class _Tracing:
    def __init__(self, lines: Lines, progress: Progress, tally: Tally) -> None:
        self._lines = lines
        self._progress = progress
        self._tally = tally
        self._defined: dict[str, Place] = {}  # by the name of the graph to be

    def begin(self, name: Any = "", python_func: Any = None, *_: Any, **__: Any) -> None:
        place = place_of_function(python_func)
        if place:
            self._defined[name] = place
        self._tally.traced(str(name), place)
        if self._lines.begin_trace():
            self._progress.begin("trace", str(name), mark=False)

    def end(self, *_: Any) -> None:
        if self._lines.end_trace():
            self._progress.end("trace")

    def becomes_function(self, name: Any, graph: Any, *_: Any, **__: Any) -> None:
        self._lines.write(graph, name, self._defined.pop(graph.name, None))

    def becomes_function_2_12(self, _self: Any, name: Any, graph: Any, *_: Any, **__: Any) -> None:
        self.becomes_function(name, graph)


def _converted(lines: Lines) -> Callable[..., None]:
    def converted(function: Any, _: Any) -> None:
        if function is not None:
            lines.converted(function)

    return converted


def _called(lines: Lines, progress: Progress) -> Callable[..., None]:
    def called(*_: Any, **__: Any) -> None:
        if not lines.tracing:
            progress.called()

    return called


class _Taking:
    """Elements of datasets that the program takes in a loop of its own."""

    def __init__(self, lines: Lines, progress: Progress) -> None:
        self._lines = lines
        self._progress = progress

    def begin(self, iterator: Any) -> None:
        if not self._lines.tracing:
            iterator._faultlens_taken = number = getattr(iterator, "_faultlens_taken", 0) + 1
            self._progress.taking(number)

    def end(self, *_: Any) -> None:
        if not self._lines.tracing:
            self._progress.taken()


def guarded_saving(progress: Progress, guard: Guard) -> Callable[[str, str], Hook]:
    """Hooks of functions whose second argument is the file to be saved. Only the outermost counts."""

    def begin(_: Any = None, file: Any = "", *__: Any, **keywords: Any) -> None:
        if not progress.inside("save"):
            file = file or keywords.get("filepath") or keywords.get("export_dir") or keywords.get("file_prefix")
            progress.begin("save", _path(file))

    def end(*_: Any) -> None:
        progress.end("save", mark="saved")

    return lambda module, name: Hook(module, name, guard(begin), guard(end))


def _path(file: Any) -> str:
    return os.fsdecode(file) if isinstance(file, (str, bytes, os.PathLike)) else ""
