"""The line that wrote an op of a graph: what code inside the program remembered when the graph was traced.

Nodes have other names when they run than when they were made: functions are inlined into their callers, optimisers
replace nodes. A name that could mean several lines means none."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from faultlens.guest.lines import BY_CALLER, GENERATED_CODE, GRADIENTS
from faultlens.inspection.frames import is_own
from faultlens.records.crash import Crash, Frame, Kernel

MAX_PROBLEMS = 3

Text = Annotated[str, msgspec.Meta(max_length=4096)]
Number = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]

# How inlining names the nodes of a branch or a loop: "cond/then/_0/cond/Relu".
_BRANCH = re.compile(r"/(?:then|else|body|cond|branch\w*)/_\d+$")
_CALL = re.compile(r"(?:^|/)(?:Stateful)?PartitionedCall(?:_\d+)?$")
# What optimisers put around the name of the node they replace.
_OPTIMISER = re.compile(r"^(?:\w*Optimizer|ConstantFolding|Remapper)/(?:[A-Z][A-Za-z]*_)?")
_REPLACED = re.compile(r"-[^/]*$")
# The node whose gradient a node computes: by a tape, and by tf.gradients() or the gradient of a whole function.
_TAPE = re.compile(r"^gradient_tape/")
_GRADIENT = re.compile(r"(?:^|/)gradients(?:_\d+)?/(?P<forward>.+?)_grad(?:_\d+)?/")
# Who runs kernels: the first one calls a single op for Python, the others those of a graph.
_ONE_OP = "KernelAndDeviceOp::Run"
_RUNNER = re.compile(rf"\b{_ONE_OP}\b|\bExecutorState<|\bSingleThreadedExecutor|\bXlaCompilationDevice::|\bgrappler::")
# How the generated Python function of an op calls it, where the fast way is not open.
_EXECUTE, _SLOW_PATH = ("quick_execute", "execute_with_cancellation"), "_eager_fallback"


class _Place(msgspec.Struct, frozen=True, array_like=True):
    file: Text
    line: Number
    function: Text

    @property
    def frame(self) -> Frame:
        return Frame(kind="python", function=self.function, file=self.file, line=self.line)


class _Nodes(msgspec.Struct, frozen=True, array_like=True):
    file: Text
    line: Number
    function: Text
    flags: int
    names: str  # separated by blanks

    @property
    def place(self) -> _Place:
        return _Place(self.file, self.line, self.function)


class _Function(msgspec.Struct, frozen=True):
    """A line of the notes about a graph. `function` is None for a graph that was run as it is."""

    pid: int
    function: Text | None
    places: tuple[_Nodes, ...]
    layers: dict[str, str] = {}  # name scope -> layer
    calls: frozenset[str] = frozenset()
    extends: str | None = None  # the function that has the same nodes, and these in addition
    defined: _Place | None = None


class _Layer(msgspec.Struct, frozen=True):
    pid: int
    layer: Text
    place: _Place


class _Problem(msgspec.Struct, frozen=True):
    pid: int
    problem: Text


Line = TypeVar("Line", _Function, _Layer, _Problem)


class Written(NamedTuple):
    """What is known of a node."""

    frame: Frame | None = None
    function: str | None = None
    layer: str | None = None
    layer_made: Frame | None = None
    in_statement: bool = False  # the line is any one of its statement: AutoGraph joins them


class _Made(NamedTuple):
    """A node as it was made."""

    name: str
    graph: _Function
    nodes: _Nodes
    inlined: bool = False  # into the graph that calls its own


class GraphLines:
    def __init__(self, functions: Sequence[_Function], layers: Sequence[_Layer], problems: Sequence[str]) -> None:
        self._functions = functions
        self._nodes: dict[str, list[_Made]] = {}
        for graph in functions:
            for nodes in graph.places:
                for name in nodes.names.split():
                    self._nodes.setdefault(name, []).append(_Made(name, graph, nodes))
        self._layers = {layer.layer: layer.place for layer in layers}
        self.problems = tuple(problems[:MAX_PROBLEMS])

    @classmethod
    def parse(cls, notes: bytes, pid: int | None = None, parent: int | None = None) -> GraphLines:
        """Those of a process; if it has none, of its parent, whose graphs a fork inherits. None: of all.

        Lines that are damaged or cut off are left out."""
        functions = list(_read(notes, _Function))
        of = pid if any(each.pid == pid for each in functions) else parent
        return cls(
            [each for each in functions if pid is None or each.pid == of],
            [each for each in _read(notes, _Layer) if pid is None or each.pid == of],
            [each.problem for each in _read(notes, _Problem) if pid is None or each.pid == pid],
        )

    def find(self, node: str, function: str | None = None, callers: Collection[tuple[str, int]] = ()) -> Written:
        """`function` is the graph function that the node runs in; `callers` are the lines (file, number) of the user's
        code on the stack from which it was started."""
        made = self._made(node)
        best = Written()
        for decides in (
            lambda each: function is None or each.graph.function == function,
            lambda each: self._is_called_from(each.graph, callers),
            lambda each: self._is_called(each.graph) == each.inlined,
        ):
            made = [each for each in made if decides(each)] or made
            found = {self._written(each) for each in made}
            if len({(written.frame, written.layer_made) for written in found}) == 1:
                best = _common(found)
        return best

    def defined(self, function: str) -> Frame | None:
        """Where a graph function was written."""
        places = {each.defined for each in self._functions if each.function == function and each.defined}
        return places.pop().frame if len(places) == 1 else None

    # ------------------------------------------------------------------------------------------- names

    def _made(self, node: str) -> list[_Made]:
        """The nodes that this one may be, judged by its name."""
        without = _OPTIMISER.sub("", node)
        for name in dict.fromkeys((node, without, _REPLACED.sub("", without))):
            for end in _ends(name):
                prefix = name[: -len(end) - 1]
                found = [each for each in self._named(end) if end == name or self._leads_to(prefix, each.graph)]
                if found:
                    return [each._replace(inlined=end != name) for each in found]
        return []

    def _named(self, name: str) -> Iterator[_Made]:
        for made in self._nodes.get(name, ()):
            yield made
            if made.graph.function is not None:
                extended = (other for other in self._functions if other.extends == made.graph.function)
                yield from (made._replace(graph=other) for other in extended)

    def _leads_to(self, prefix: str, graph: _Function) -> bool:
        """Whether inlining the function gives its nodes such a prefix: the name of the node that calls it."""
        node = _BRANCH.sub("", prefix)
        for end in _ends(node):
            if callers := list(self._named(end)):
                return any(graph.function in each.graph.calls for each in callers)
        return node != prefix or bool(_CALL.search(node))

    # --------------------------------------------------------------------------------------- functions

    def _is_called(self, graph: _Function) -> bool:
        """By another graph, in contrast to the program."""
        return any(graph.function in each.calls for each in self._functions)

    def _is_called_from(self, graph: _Function, callers: Collection[tuple[str, int]]) -> bool:
        roots = [each for each in self._functions if each is graph or graph.function in each.calls]
        return any(
            nodes.flags & BY_CALLER and (nodes.file, nodes.line) in callers for root in roots for nodes in root.places
        )

    # ------------------------------------------------------------------------------------------- lines

    def _written(self, made: _Made) -> Written:
        made = self._forward(made) or made
        scopes = _scopes(_TAPE.sub("", made.name))
        layer = next((made.graph.layers[scope] for scope in scopes if scope in made.graph.layers), None)
        if made.nodes.flags & BY_CALLER:  # no line of the function is the user's: it is a library's, or was loaded
            return Written(None, made.graph.function, layer, layer_made=self._made_at(layer))
        generated = bool(made.nodes.flags & GENERATED_CODE)
        return Written(made.nodes.place.frame, made.graph.function, layer, in_statement=generated)

    def _made_at(self, layer: str | None) -> Frame | None:
        return self._layers[layer].frame if layer in self._layers else None

    def _forward(self, made: _Made) -> _Made | None:
        """The node whose gradient this one computes: its line tells more than that of the call for gradients."""
        if not made.nodes.flags & (BY_CALLER | GRADIENTS):
            return None  # made by a gradient function of the user's own
        if match := _GRADIENT.search(made.name):
            return _only(self._named(match["forward"]))
        if not _TAPE.match(made.name):
            return None
        # A tape puts gradients under the name scope of the op: its own name, or the one around it.
        scopes = _scopes(_TAPE.sub("", made.name))
        for scope in scopes:
            if found := _only(each for each in self._named(scope) if each.graph is made.graph):
                return found
        return _only(_within(made.graph, scopes[0])) if scopes else None


def _ends(name: str) -> list[str]:
    """ "a/b/c", "b/c", "c"."""
    return [name, *(name[match.end() :] for match in re.finditer("/", name))]


def _scopes(name: str) -> list[str]:
    """The name scopes around a node, innermost first: "a/b", "a" of "a/b/c"."""
    return [name[: match.start()] for match in re.finditer("/", name)][::-1]


def _within(graph: _Function, scope: str) -> Iterator[_Made]:
    for nodes in graph.places:
        for name in nodes.names.split():
            if name.startswith(f"{scope}/"):
                yield _Made(name, graph, nodes)


def _only(made: Iterable[_Made]) -> _Made | None:
    """The one, or any of several that one line made."""
    found = list(made)
    return found[0] if len({each.nodes.place for each in found}) == 1 else None


def _common(found: Collection[Written]) -> Written:
    """As much as all have in common."""
    first = next(iter(found))
    return first._replace(
        function=first.function if len({each.function for each in found}) == 1 else None,
        layer=first.layer if len({each.layer for each in found}) == 1 else None,
        layer_made=first.layer_made if len({each.layer_made for each in found}) == 1 else None,
    )


def _read(notes: bytes, kind: type[Line]) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(kind)
    for line in notes.splitlines():
        with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
            yield decoder.decode(line)


# ------------------------------------------------------------------------------------------ the crash


def with_graph_lines(crash: Crash, notes: bytes, source: Callable[[str], str | None]) -> Crash:
    """The lines that wrote the ops in flight, for those that belong to a graph. `source` gives the text of a file."""
    if not crash.kernels or not notes:
        return crash
    lines = GraphLines.parse(notes, crash.pid, crash.parent_pid)
    callers = _own_lines(crash)
    kernels = tuple(_with_line(kernel, crash, lines, callers, source) for kernel in crash.kernels)
    return replace(crash, kernels=kernels, gaps=(*crash.gaps, *(f"graph lines: {each}" for each in lines.problems)))


def _with_line(
    kernel: Kernel,
    crash: Crash,
    lines: GraphLines,
    callers: Collection[tuple[str, int]],
    source: Callable[[str], str | None],
) -> Kernel:
    if defined := lines.defined(kernel.op):  # a function that is compiled as a whole runs as an op of its own
        return replace(kernel, written=defined, function=kernel.op)
    if _is_eager(kernel, crash):
        return kernel  # its line is on the stack
    function = kernel.function or _compiled_function(kernel, crash, lines)
    written = lines.find(kernel.node, function, callers)
    frame = written.frame
    if frame and frame.file and frame.line and written.in_statement:
        frame = replace(frame, line=statement_line(source(frame.file) or "", frame.line))
    return replace(
        kernel,
        written=frame,
        function=function or written.function,
        layer=written.layer,
        layer_made=written.layer_made,
    )


def statement_line(text: str, line: int) -> int:
    """The first line of the statement that a line belongs to."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return line
    around = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, default=line)


def _is_eager(kernel: Kernel, crash: Crash) -> bool:
    """Called one by one from Python: such an op has no node, and bears the name of its type."""
    if kernel.node != kernel.op:
        return False
    frames = next((thread.frames for thread in crash.threads if thread.id == kernel.thread), ())
    if all(frame.kind != "native" for frame in frames):
        return True
    own = next((at for at, each in enumerate(frames) if f"{kernel.kernel_class}::" in each.function), 0)
    below = frames[own:]
    runners = (match[0] for each in below if each.kind == "native" and (match := _RUNNER.search(each.function)))
    return next(runners, "") == _ONE_OP or _is_called_by_its_wrapper(kernel.op, below)


def _is_called_by_its_wrapper(op: str, frames: Sequence[Frame]) -> bool:
    """By the Python function that TensorFlow generates for an op: row_pick() calls RowPick. An executor may be in
    between: TensorFlow wraps a single op in a function, and runs it as it runs those of the user."""
    python = (frame.function for frame in frames if frame.kind == "python")
    wrapper = next((function for function in python if function not in _EXECUTE), "")
    return wrapper.removesuffix(_SLOW_PATH).replace("_", "").lower() == op.replace("_", "").lower()


def _compiled_function(kernel: Kernel, crash: Crash, lines: GraphLines) -> str | None:
    others = (other.op for other in crash.kernels if other.thread == kernel.thread and other is not kernel)
    return next((op for op in others if lines.defined(op)), None)


def _own_lines(crash: Crash) -> set[tuple[str, int]]:
    thread = crash.launching_thread or crash.crashed_thread
    own = (frame for frame in (thread.frames if thread else ()) if frame.kind == "python" and is_own(frame))
    return {(frame.file, frame.line) for frame in own if frame.file and frame.line}
