"""Remembers which line of the user's code made which node of which graph.

What happens here costs time while a function is traced, and none when it runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Optional

from .guard import Guard
from .notes import Notes
from .own_code import GENERATED, is_own

MAX_LAYERS = 10_000

# What else is noted of a line: it called for the function, and is not inside it;
BY_CALLER = 1
# it was rewritten by AutoGraph, which puts statements of several lines into one;
GENERATED_CODE = 2
# it asked for gradients, and TensorFlow made the nodes.
GRADIENTS = 4
_COMPUTES_GRADIENTS = ("/tensorflow/python/eager/backprop.py", "/tensorflow/python/ops/gradients_util.py")

Place = tuple[str, int, str]  # file, line, function
UserFrame = Callable[[], Optional[FrameType]]
FrameFinder = Callable[[Callable[[CodeType], int]], UserFrame]  # see inside.c
LIBRARY, USER, NOT_ASKED = range(3)  # whose code it is

# A third of all nodes are constants, whose kernels do nothing: where they are made, nobody is asked for.
_MAKES_CONSTANTS = {"_create_graph_constant", "_constant_impl"}  # since 2.13, and before

_HAS_LASTI = sys.version_info >= (3, 11)  # as inside.c has it


class _Traced:
    """What is known of a graph and not written down yet."""

    __slots__ = ("caller", "nodes", "places", "scopes", "written_as")

    def __init__(self, caller: int) -> None:
        self.caller = caller  # the frame that called for the graph, by its address
        self.nodes: dict[tuple[int, int], list[str]] = {}  # by address of the code, and of the instruction in it
        self.places: dict[tuple[int, int], tuple[CodeType, int, int]] = {}  # of these: code, line, flags
        self.scopes: dict[str, str] = {}  # name scope -> Keras layer
        self.written_as: str | None = None


class _Thread(threading.local):
    depth = 0  # of functions being traced within each other
    caller = 0


class Lines:
    def __init__(self, notes: Notes, guard: Guard, frame_finder: FrameFinder) -> None:
        self.user_frame = frame_finder(self.owner)
        self._notes = notes
        self._guard = guard
        self._thread = _Thread()
        self._source_maps: dict[str, Any] = {}  # of AutoGraph, by generated file
        self._layers: list[dict[str, Any]] = []

    # ----------------------------------------------------------------------------------- while tracing

    def begin_trace(self) -> bool:
        """True for the outermost one."""
        thread = self._thread
        thread.depth += 1
        if thread.depth == 1:
            thread.caller = id(self.user_frame())
        return thread.depth == 1

    def end_trace(self) -> bool:
        self._thread.depth = depth = max(self._thread.depth - 1, 0)
        return depth == 0

    @property
    def tracing(self) -> bool:
        return self._thread.depth > 0

    def unknown(self, graph: Any, op: Any, frame: FrameType) -> None:
        """A node made by an instruction that has made none in this graph before."""
        if not self._guard.working:
            return
        try:
            traced = self._traced(graph)
            code = frame.f_code
            place = (id(code), frame.f_lasti if _HAS_LASTI else frame.f_lineno)
            flags = BY_CALLER if id(frame) == traced.caller else 0
            traced.nodes[place] = [op.name]
            traced.places[place] = (code, frame.f_lineno, flags | _gradient_flag(frame))
        except Exception as error:
            self._guard.failed(error)

    def converted(self, function: Any) -> None:
        """AutoGraph has made a function of another one."""
        source_map = function.ag_source_map
        for generated in {location.filename for location in source_map}:
            self._source_maps[generated] = source_map

    def entered_scope(self, graph: Any, scope: str, layer: str) -> None:
        """Nodes of the graph are from now on made by a Keras layer, under this name scope."""
        self._traced(graph).scopes[scope.rstrip("/")] = layer

    def made_layer(self, layer: Any) -> None:
        frame = self.user_frame()
        while frame is not None and _initialises(frame, layer):
            frame = self._next_own(frame.f_back)
        if frame is not None and len(self._layers) < MAX_LAYERS:
            self._layers.append({"layer": layer.name, "class": type(layer).__name__, "place": self._place(frame)})

    def running(self) -> Place | None:
        """The innermost line of the user's."""
        frame = self.user_frame()
        return self._place(frame) if frame is not None else None

    # -------------------------------------------------------------------------------- writing it down

    def write(self, graph: Any, name: Any = None, defined: Place | None = None) -> None:
        """The graph is about to become a function of this name (None: to be run as it is)."""
        traced = getattr(graph, "_faultlens_traced", None)
        if traced is None or (not traced.nodes and name == traced.written_as):
            return
        name = name.decode() if isinstance(name, bytes) else name
        record: dict[str, Any] = {"function": name, "places": self._places(traced)}
        if traced.scopes:
            record["layers"] = traced.scopes
        if graph._functions:
            record["calls"] = list(graph._functions)
        if defined:
            record["defined"] = defined
        if traced.written_as is not None:
            record["extends"] = traced.written_as
        self._notes.write(*self._layers, record)
        self._layers = []
        after = _remember(graph, _Traced(0))
        after.written_as = name if traced.written_as is None else traced.written_as

    def _places(self, traced: _Traced) -> list[list[Any]]:
        found: dict[tuple[Place, int], list[str]] = {}
        for key, (code, line, flags) in traced.places.items():
            place = self._origin(code.co_filename, line, _function_name(code))
            flags |= GENERATED_CODE if code.co_filename in self._source_maps else 0
            found.setdefault((place, flags), []).extend(traced.nodes[key])
        return [[*place, flags, " ".join(nodes)] for (place, flags), nodes in found.items()]

    # ------------------------------------------------------------------------------------------ frames

    def _traced(self, graph: Any) -> _Traced:
        traced = getattr(graph, "_faultlens_traced", None)
        if traced is None:
            caller = 0
            if self._thread.depth:
                caller = self._thread.caller
            elif graph.building_function:  # being prepared
                caller = id(self.user_frame())
            traced = _remember(graph, _Traced(caller))
        return traced

    def owner(self, code: CodeType) -> int:
        file = code.co_filename
        if code.co_name in _MAKES_CONSTANTS and "/tensorflow/python/framework/" in file:
            return NOT_ASKED
        if GENERATED in file:
            file = self._origin(file, code.co_firstlineno, "")[0]
        return USER if is_own(file) else LIBRARY

    def _next_own(self, frame: FrameType | None) -> FrameType | None:
        while frame is not None and self.owner(frame.f_code) != USER:
            frame = frame.f_back
        return frame

    def _place(self, frame: FrameType) -> Place:
        return self._origin(frame.f_code.co_filename, frame.f_lineno, _function_name(frame.f_code))

    def _origin(self, file: str, line: int, function: str) -> Place:
        """The line of the user's file, where this one is of AutoGraph's rewritten copy."""
        source_map = self._source_maps.get(file)
        if source_map is None:
            return file, line, function
        # Generated code may take several lines for one: the next one above that has an origin.
        for above in range(line, 0, -1):
            origin = source_map.get((file, above))
            if origin is not None:
                return origin.loc.filename, origin.loc.lineno, origin.function_name or function
        return file, line, function


def _remember(graph: Any, traced: _Traced) -> _Traced:
    graph._faultlens_traced = traced
    graph._faultlens_nodes = traced.nodes  # where inside.c finds them
    return traced


def place_of_function(function: Any) -> Place | None:
    """Where the user wrote a function that TensorFlow has wrapped; None if it is not theirs."""
    for _ in range(16):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or not is_own(code.co_filename):
        return None
    return code.co_filename, code.co_firstlineno, _function_name(code)


def _gradient_flag(user_frame: FrameType) -> int:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not user_frame:
        if frame.f_code.co_filename.endswith(_COMPUTES_GRADIENTS):
            return GRADIENTS
        frame = frame.f_back
    return 0


def _initialises(frame: FrameType, layer: Any) -> bool:
    """Whether this is the __init__ of the layer's own class, which is not where it was made."""
    code = frame.f_code
    return code.co_name == "__init__" and bool(code.co_argcount) and frame.f_locals.get(code.co_varnames[0]) is layer


def _function_name(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)
