"""SavedModel folders: the graph, and its variables as a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from faultlens.model_files import checkpoint, code
from faultlens.model_files.protobuf import WireError, fields, text
from faultlens.model_files.record import Damage, Saved
from faultlens.model_files.regular import opened, size_of, whole

GRAPH, GRAPH_AS_TEXT = "saved_model.pb", "saved_model.pbtxt"
# Field numbers, message by message.
META_GRAPHS = 2  # SavedModel
META_INFO, GRAPH_DEF, ASSETS, OBJECT_GRAPH = 1, 2, 6, 7  # MetaGraphDef
TENSORFLOW_VERSION = 5  # MetaInfoDef
NODE, LIBRARY, VERSIONS, MIN_CONSUMER = 1, 2, 4, 2  # GraphDef, VersionDef
FUNCTION, NODE_OF_FUNCTION, OP = 1, 3, 2  # FunctionDefLibrary, FunctionDef, NodeDef
ASSET_NAME = 2  # AssetFileDef
NODES, CHILDREN, ASSET, VARIABLE = 1, 1, 5, 7  # SavedObjectGraph, SavedObject
CHILD, CHILD_NAME = 1, 2  # ObjectReference
TABLE_FILE = "_filename"  # what a table calls the asset that it is filled from when the model is loaded
MAX_GRAPHS = 4
MAX_NAME = 4096
MAX_ASSETS = 1000


@dataclass(frozen=True)
class Content:
    """What the graph tells."""

    version: str | None = None  # of the TensorFlow that wrote it
    min_consumer: int = 0  # the oldest GraphDef version that may read it
    has_variables: bool = False
    ops: frozenset[str] = frozenset()  # that its graph and its functions call
    assets: frozenset[str] = frozenset()  # names of files in the folder `assets`
    needed_assets: frozenset[str] = frozenset()  # those that are read when the model is loaded


def read(path: Path, deep: bool) -> Saved:
    graph = path / GRAPH
    if size_of(graph) is None and size_of(path / GRAPH_AS_TEXT) is not None:
        graph = path / GRAPH_AS_TEXT
    damages: list[Damage] = []
    content = Content()
    if size_of(graph) is None:
        damages.append(Damage(graph, "is missing"))
    elif graph.name == GRAPH:
        try:
            content = _graph(graph)
        except WireError as error:
            damages.append(Damage(graph, "is empty" if size_of(graph) == 0 else f"is damaged: {error}"))
    variables = checkpoint.prefix_of(path / "variables" / "variables")
    if variables is None and content.has_variables:
        damages.append(Damage(path / "variables" / "variables.index", "is missing"))
    missing = [name for name in sorted(content.assets) if size_of(path / "assets" / name) is None]
    damages += [Damage(path / "assets" / name, "is missing") for name in missing if name in content.needed_assets]
    saved = Saved(
        path=path,
        kind="SavedModel",
        files=1,
        size=size_of(graph) or 0,
        writers=(("TensorFlow", content.version),) if content.version else (),
        min_consumer=content.min_consumer,
        damages=tuple(damages),
        lacks=tuple(path / "assets" / name for name in missing if name not in content.needed_assets),
        notes=tuple(_notes(path)),
        code=tuple(_code(path, content)),
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


def _graph(path: Path) -> Content:
    content, graphs = Content(), 0
    for meta_graph in islice(_messages(whole(path), META_GRAPHS), MAX_GRAPHS):
        graphs += 1
        names: list[str] = []
        for number, value in fields(meta_graph):  # assets come before the objects that use them
            if not isinstance(value, memoryview):
                continue
            if number == META_INFO:
                version = next((text(each, 40) for each in _messages(value, TENSORFLOW_VERSION)), content.version)
                content = replace(content, version=version)
            elif number == GRAPH_DEF:
                content = replace(content, ops=content.ops | _ops(value))
                for versions in _messages(value, VERSIONS):
                    numbers = [each for field, each in fields(versions) if field == MIN_CONSUMER]
                    oldest = max([content.min_consumer, *(each for each in numbers if isinstance(each, int))])
                    content = replace(content, min_consumer=oldest)
            elif number == ASSETS:
                names += [text(each, MAX_NAME) for each in _messages(value, ASSET_NAME)]
                content = replace(content, assets=content.assets | {name for name in names if "\0" not in name})
            elif number == OBJECT_GRAPH:
                content = _with_objects(content, list(_messages(value, NODES)), names)
    if not graphs:
        raise WireError("it holds no graph")
    return content


def _ops(graph: memoryview) -> frozenset[str]:
    nodes = [_messages(graph, NODE)]
    for library in _messages(graph, LIBRARY):
        nodes += [_messages(function, NODE_OF_FUNCTION) for function in _messages(library, FUNCTION)]
    return frozenset(text(op, 80) for some in nodes for node in some for op in _messages(node, OP))


def _with_objects(content: Content, objects: list[memoryview], asset_names: list[str]) -> Content:
    """Whether there are variables, and which assets loading reads: those that fill a table."""
    has_variables, needed = content.has_variables, set(content.needed_assets)
    assets: dict[int, int] = {}  # object -> place among the assets
    read_by_tables: list[int] = []
    for place, each in enumerate(objects):
        for number, value in fields(each):
            if not isinstance(value, memoryview):
                continue
            if number == VARIABLE:
                has_variables = True
            elif number == ASSET:
                assets[place] = _number(value, 1)
            elif number == CHILDREN and TABLE_FILE in map(text, _messages(value, CHILD_NAME)):
                read_by_tables.append(_number(value, CHILD))
    for place in read_by_tables:
        if place in assets and assets[place] < len(asset_names):
            needed.add(asset_names[assets[place]])
    return replace(content, has_variables=has_variables, needed_assets=frozenset(needed))


def _number(message: memoryview, wanted: int) -> int:
    """Zero is not written."""
    return next((value for number, value in fields(message) if number == wanted and isinstance(value, int)), 0)


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in fields(message):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _code(path: Path, content: Content) -> Iterator[str]:
    yield from code.in_ops(set(content.ops))
    metadata = path / "keras_metadata.pb"
    if (size_of(metadata) or 0) and b'"function_type": "lambda"' in bytes(whole(metadata)):
        yield code.MARSHALLED.format("Lambda")
    for folder in ("assets", "assets.extra"):
        for file in islice(sorted((path / folder).rglob("*")), MAX_ASSETS):
            if size_of(file) and _begins_with(file, b"\x7fELF"):
                yield f"its asset {file.name} is a native library"


def _begins_with(path: Path, magic: bytes) -> bool:
    with opened(path) as file:
        return file.read(len(magic)) == magic


def _notes(path: Path) -> Iterator[str]:
    if size_of(path / "keras_metadata.pb") is not None:
        yield "it was saved by Keras 2"
