"""SavedModel folders: the graph, and its variables as a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from faultlens.saved import checkpoint
from faultlens.saved.protobuf import WireError, fields, text
from faultlens.saved.record import Damage, Saved
from faultlens.saved.regular import size_of, whole

GRAPH, GRAPH_AS_TEXT = "saved_model.pb", "saved_model.pbtxt"
# Field numbers, message by message.
META_GRAPHS = 2  # SavedModel
META_INFO, GRAPH_DEF, OBJECT_GRAPH = 1, 2, 7  # MetaGraphDef
TENSORFLOW_VERSION = 5  # MetaInfoDef
VERSIONS, MIN_CONSUMER = 4, 2  # GraphDef, VersionDef
NODES, VARIABLE = 1, 7  # SavedObjectGraph, SavedObject
MAX_GRAPHS = 4


def read(path: Path, deep: bool) -> Saved:
    graph = path / GRAPH
    if size_of(graph) is None and size_of(path / GRAPH_AS_TEXT) is not None:
        graph = path / GRAPH_AS_TEXT
    damages: list[Damage] = []
    version, min_consumer, has_variables = None, 0, False
    if size_of(graph) is None:
        damages.append(Damage(graph, "is missing"))
    elif graph.name == GRAPH:
        try:
            version, min_consumer, has_variables = _graph(graph)
        except WireError as error:
            damages.append(Damage(graph, "is empty" if size_of(graph) == 0 else f"is damaged: {error}"))
    variables = checkpoint.prefix_of(path / "variables" / "variables")
    if variables is None and has_variables:
        damages.append(Damage(path / "variables" / "variables.index", "is missing"))
    saved = Saved(
        path=path,
        kind="SavedModel",
        files=1,
        size=size_of(graph) or 0,
        writers=(("TensorFlow", version),) if version else (),
        min_consumer=min_consumer,
        damages=tuple(damages),
        notes=tuple(_notes(path)),
    )
    return _with(saved, checkpoint.read(path, variables, deep)) if variables is not None else saved


def _with(saved: Saved, variables: Saved) -> Saved:
    return replace(
        saved,
        files=saved.files + variables.files,
        size=saved.size + variables.size,
        weights=variables.weights,
        largest=variables.largest,
        damages=saved.damages + variables.damages,
        notes=saved.notes + variables.notes,
        checked=variables.checked,
    )


def _graph(path: Path) -> tuple[str | None, int, bool]:
    """The TensorFlow that wrote it, the oldest GraphDef version that may read it, whether there are variables."""
    version, min_consumer, graphs, has_variables = None, 0, 0, False
    for meta_graph in islice(_messages(whole(path), META_GRAPHS), MAX_GRAPHS):
        graphs += 1
        for number, value in fields(meta_graph):
            if not isinstance(value, memoryview):
                continue
            if number == META_INFO:
                version = next((text(each, 40) for each in _messages(value, TENSORFLOW_VERSION)), version)
            elif number == GRAPH_DEF:
                for versions in _messages(value, VERSIONS):
                    numbers = [each for field, each in fields(versions) if field == MIN_CONSUMER]
                    min_consumer = max([min_consumer, *(each for each in numbers if isinstance(each, int))])
            elif number == OBJECT_GRAPH:
                objects = _messages(value, NODES)
                has_variables |= any(next(_messages(each, VARIABLE), None) is not None for each in objects)
    if not graphs:
        raise WireError("it holds no graph")
    return version, min_consumer, has_variables


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in fields(message):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _notes(path: Path) -> Iterator[str]:
    if size_of(path / "keras_metadata.pb") is not None:
        yield "it was saved by Keras 2"
