"""What the user's sources do with raw memory: foreign functions, views without an owner, releases, threads.

Read from the syntax tree, so that import names, line breaks and comments do not matter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from faultlens.records.crash import Crash
from faultlens.records.diagnosis import Location

_OPENS_LIBRARY = frozenset({"CDLL", "PyDLL", "LoadLibrary", "load_library", "pythonapi"})
_STARTS_THREADS = frozenset({"Thread", "Timer", "ThreadPoolExecutor", "ThreadPool", "start_new_thread", "to_thread"})
_HANDS_TO_THREADS = frozenset({"submit", "apply_async", "run_in_executor", "start_new_thread", "map_async"})
# Views that do not check, or do not own, the memory they show.
_STRIDED = frozenset({"as_strided"})
_ADDRESSED = frozenset({"from_address", "as_array", "PyMemoryView_FromMemory"})
# Functions of ctypes that read or write at a bare address as many bytes as they are told.
_WRITES_RAW = frozenset({"memmove", "memset"})
_C_WRITES = re.compile(r"^(?:memp?cpy|memmove|memset|st[rp]n?(?:cpy|cat)|v?sn?printf|f?gets|f?read|recv)$")
_RAW = _WRITES_RAW | {"string_at", "wstring_at"}
_BORROWED = frozenset({"frombuffer", "from_dlpack", "from_buffer", "ndarray", "as_array", "from_address", "data_as"})
_RELEASES = re.compile(
    r"(?:^|_)(?:c?free|rel|unref|munmap|unmap|release|destroy|delete|dealloc\w*|dispose|close|drop|shutdown|resize)(?:_|$)|(?:Free|Release|Destroy|Close)$"
)
_MAPS_FILES = frozenset({"mmap", "memmap", "SharedMemory", "open_memmap"})
_CALLBACKS = frozenset({"CFUNCTYPE", "PYFUNCTYPE", "WINFUNCTYPE"})
_POINTERS = frozenset({"c_void_p", "c_char_p", "POINTER", "cast", "byref", "pointer"})
_NARROW = frozenset({"c_int", "c_uint", "c_int32", "c_uint32"})
_NEVER_NULL = frozenset(
    {"byref", "pointer", "addressof", "create_string_buffer", "data_as", "encode", "len", "from_buffer"}
)
_C_TYPES = (
    _POINTERS
    | _NARROW
    | {"c_long", "c_ulong", "c_size_t", "c_ssize_t", "c_int64", "c_uint64", "c_float", "c_double", "c_bool"}
)

_TELLING = (
    _OPENS_LIBRARY | _STARTS_THREADS | _HANDS_TO_THREADS | _STRIDED | _ADDRESSED | _RAW | _BORROWED | _MAPS_FILES
    | _CALLBACKS | _NARROW | {"Py_DecRef", "Py_IncRef", "_Py_Dealloc", "fork", "forkpty"}
)  # fmt: skip


class Use(NamedTuple):
    """One place in the user's sources."""

    file: str
    line: int
    name: str  # of the function that is called, or the variable that is deleted
    within: str  # the function it stands in; "<module>" outside of any
    foreign: bool = False  # a function of a library that was opened with ctypes
    raw: bool = False  # a function of ctypes that works on bare addresses
    result_used: bool = False
    null: bool = False  # one of the arguments is plainly a null pointer
    maybe_null: bool = False  # one of the arguments could be one
    numbers: tuple[int, ...] = ()  # plain integers among the arguments
    arguments: int | None = None  # how many; None when that cannot be told (*rest)
    bare_argument: bool = False  # an argument is a variable or address, not wrapped in a C type
    receiver: str = ""  # "libc" in libc.free(p)
    keywords: tuple[str, ...] = ()

    @property
    def location(self) -> Location:
        return Location(file=self.file, line=self.line, function=self.within)

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class Sources(NamedTuple):
    """All uses in the sources that were recorded with a crash, in the order of the lines."""

    calls: tuple[Use, ...] = ()
    deletions: tuple[Use, ...] = ()
    pointers: tuple[Use, ...] = ()  # addresses taken of arrays: a.ctypes.data
    typed_results: frozenset[str] = frozenset()  # functions whose restype was declared
    typed_arguments: frozenset[str] = frozenset()  # those whose argtypes were
    imports: frozenset[str] = frozenset()
    thread_targets: frozenset[str] = frozenset()

    def called(self, *names: str) -> Use | None:
        return next((use for use in self.calls if use.name in names), None)

    @property
    def foreign(self) -> tuple[Use, ...]:
        return tuple(use for use in self.calls if use.foreign)

    @property
    def untyped_result(self) -> Use | None:
        """A foreign function whose result is used although ctypes was not told its type: it takes it for an int."""
        return next((use for use in self.foreign if use.result_used and use.name not in self.typed_results), None)

    @property
    def untyped_argument(self) -> Use | None:
        """A foreign function that is handed plain integers: ctypes passes them as 32-bit ints."""
        untyped = (use for use in self.foreign if use.bare_argument and use.name not in self.typed_arguments)
        return next(untyped, None)

    @property
    def narrowed(self) -> Use | None:
        """A value put into a 32-bit C integer."""
        return self.called(*_NARROW)

    @property
    def strided_view(self) -> Use | None:
        return self.called(*_STRIDED)

    @property
    def addressed_view(self) -> Use | None:
        """Memory that is reached by its bare address: nothing checks its size."""
        return self.called(*_ADDRESSED)

    @property
    def raw_access(self) -> Use | None:
        """A copy from or to a bare address, of as many bytes as it is told."""
        return next((use for use in self.calls if use.raw), None)

    @property
    def raw_writes(self) -> tuple[Use, ...]:
        """The calls that write as many bytes as they are told, or as they are given."""
        by_ctypes = {use for use in self.calls if use.raw and use.name in _WRITES_RAW}
        return tuple(use for use in self.calls if use in by_ctypes or (use.foreign and _C_WRITES.match(use.name)))

    @property
    def unchecked(self) -> tuple[Use, ...]:
        """The calls that reach memory with bounds that nobody checks: views of any shape, pointers, raw writes."""
        casts = {use for use in self.calls if use.name == "cast" and use.receiver == "ctypes"}
        views = {use for use in self.calls if use.name in _STRIDED | _ADDRESSED} | casts | set(self.raw_writes)
        return tuple(use for use in self.calls if use in views)

    @property
    def borrowed_view(self) -> Use | None:
        """An array or tensor over memory that somebody else owns."""
        return self.called(*_BORROWED)

    @property
    def release(self) -> Use | None:
        """The last place where memory is given back by hand."""
        uses = [use for use in self.calls if _RELEASES.search(use.name) and (use.foreign or use.name == "resize")]
        return uses[-1] if uses else None

    @property
    def frees(self) -> tuple[Use, ...]:
        return tuple(use for use in self.foreign if _RELEASES.search(use.name))

    @property
    def released_by_thread(self) -> Use | None:
        uses = [use for use in (*self.calls, *self.deletions) if use.within in self.thread_targets]
        released = (use for use in uses if _RELEASES.search(use.name) or use in self.deletions)
        return next(released, None)

    @property
    def threads(self) -> Use | None:
        return self.called(*_STARTS_THREADS)

    @property
    def parallel(self) -> Use | None:
        """Work that is spread over threads, by Python or by tf.data."""
        spread = (use for use in self.calls if "num_parallel_calls" in use.keywords)
        return self.threads or next(spread, None)

    @property
    def callback(self) -> Use | None:
        return self.called(*_CALLBACKS)

    @property
    def mapped_file(self) -> Use | None:
        """A file mapping made through Python's own objects, as opposed to a foreign mmap()."""
        return next((use for use in self.calls if use.name in _MAPS_FILES and not use.foreign), None)


def sources_of(crash: Crash) -> Sources:
    return _merged(tuple(crash.sources.items()))


@lru_cache(maxsize=4)
def _merged(files: tuple[tuple[str, str], ...]) -> Sources:
    parts = [_read(file, text) for file, text in files]
    return Sources(
        tuple(use for part in parts for use in part.calls),
        tuple(use for part in parts for use in part.deletions),
        tuple(use for part in parts for use in part.pointers),
        frozenset().union(*(part.typed_results for part in parts)),
        frozenset().union(*(part.typed_arguments for part in parts)),
        frozenset().union(*(part.imports for part in parts)),
        frozenset().union(*(part.thread_targets for part in parts)),
    )


def of_text(text: str) -> Sources:
    return _read("", text)


def is_telling(use: Use) -> bool:
    """Whether a rule may look at the call; see the properties of Sources."""
    return (
        use.foreign or use.name in _TELLING or bool(_RELEASES.search(use.name)) or "num_parallel_calls" in use.keywords
    )


def declarations(tree: ast.AST) -> Iterator[ast.stmt]:
    """The statements by which calls are told to be foreign, typed, or on another thread."""
    libraries, _ = _foreign_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value, targets = node.value, node.targets
            function = isinstance(value, ast.Attribute) and (_last(value.value) in libraries or _opens(value.value))
            declared = any(isinstance(each, ast.Attribute) and each.attr in ("restype", "argtypes") for each in targets)
            if function or declared or _opens(value):
                yield node
        elif isinstance(node, ast.ClassDef) and any(_last(base) == "Thread" for base in node.bases):
            yield node


def _read(file: str, text: str) -> Sources:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Sources()
    libraries, functions = _foreign_names(tree)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    calls, deletions, pointers = [], [], []
    for node, within in _with_function(tree, "<module>"):
        if isinstance(node, ast.Call):
            used = not isinstance(parents.get(node), ast.Expr)
            calls.append(_call(node, libraries, functions)._replace(file=file, within=within, result_used=used))
        elif isinstance(node, ast.Delete):
            names = (_last(target) for target in node.targets)
            deletions += [Use(file=file, line=node.lineno, name=name, within=within) for name in names if name]
        elif isinstance(node, ast.Attribute) and node.attr == "data" and _receiver(node) == "ctypes":
            pointers.append(Use(file=file, line=node.lineno, name="ctypes.data", within=within))
    for uses in (calls, deletions, pointers):
        uses.sort(key=lambda use: use.line)
    return Sources(
        tuple(calls),
        tuple(deletions),
        tuple(pointers),
        frozenset(_declared(tree, functions, "restype")),
        frozenset(_declared(tree, functions, "argtypes")),
        frozenset(_imported(tree)),
        frozenset(_on_threads(tree, calls)),
    )


def _call(node: ast.Call, libraries: set[str], functions: dict[str, str]) -> Use:
    name, receiver = _last(node.func), _receiver(node.func)
    return Use(
        file="",
        line=node.lineno,
        name=functions.get(name, name) if not receiver else name,
        within="",
        foreign=receiver in libraries or (not receiver and name in functions) or _opens(_value(node.func)),
        arguments=None if any(isinstance(each, ast.Starred) for each in node.args) else len(node.args),
        null=any(_is_null(argument) for argument in node.args),
        maybe_null=any(_is_null(argument) or _is_open(argument) for argument in node.args),
        numbers=tuple(number for argument in node.args if (number := _number(argument)) is not None),
        bare_argument=any(_is_bare(argument) for argument in node.args),
        raw=name in _RAW,
        receiver=receiver,
        keywords=tuple(keyword.arg for keyword in node.keywords if keyword.arg),
    )


def _with_function(tree: ast.AST, outermost: str) -> Iterator[tuple[ast.AST, str]]:
    """All nodes, each with the function it stands in. Not recursive: sources may be nested deeply."""
    waiting = [(tree, outermost)]
    while waiting:
        node, within = waiting.pop()
        yield node, within
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else within
        waiting += [(child, inner) for child in ast.iter_child_nodes(node)]


def _foreign_names(tree: ast.AST) -> tuple[set[str], dict[str, str]]:
    """Variables that hold a library, and those that hold a function of one (-> the function's name)."""
    assigned = [
        (_last(target), node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    libraries = {name for name, value in assigned if name and _opens(value)} | {"pythonapi"}
    functions = {
        name: value.attr
        for name, value in assigned
        if name and isinstance(value, ast.Attribute) and (_last(value.value) in libraries or _opens(value.value))
    }
    return libraries, functions


def _opens(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) in _OPENS_LIBRARY


def _declared(tree: ast.AST, functions: dict[str, str], what: str) -> Iterator[str]:
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and target.attr == what:
                name = _last(target.value)
                yield functions.get(name, name)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _on_threads(tree: ast.AST, calls: list[Use]) -> set[str]:
    """Functions that run on another thread, with all that they call."""
    found: set[str] = set()
    waiting = [name for name in _thread_targets(tree) if name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [use.name for use in calls if use.within == name and not use.foreign]
    return found


def _thread_targets(tree: ast.AST) -> Iterator[str]:
    """Functions that are started on another thread."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(_last(base) == "Thread" for base in node.bases):
            yield "run"
        if isinstance(node, ast.Call):
            if _last(node.func) in _STARTS_THREADS:
                yield from (_last(keyword.value) for keyword in node.keywords if keyword.arg in ("target", "function"))
            if _last(node.func) in _HANDS_TO_THREADS | {"Timer"}:
                yield from (_last(argument) for argument in node.args[:2])


def _is_null(node: ast.AST) -> bool:
    """None, and pointers made of nothing: c_void_p(), c_void_p(0), POINTER(T)()."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if not isinstance(node, ast.Call):
        return False
    makes_pointer = _last(node.func) in _POINTERS or (
        isinstance(node.func, ast.Call) and _last(node.func.func) == "POINTER"
    )
    return makes_pointer and all(_nothing(argument) for argument in node.args[:1])


def _number(node: ast.AST) -> int | None:
    """8, and c_void_p(8)."""
    if isinstance(node, ast.Call) and _last(node.func) in _C_TYPES and node.args:
        node = node.args[0]
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _is_open(node: ast.AST) -> bool:
    """What an argument will be cannot be told from the call: a variable, or the result of another function."""
    if isinstance(node, ast.Name | ast.Subscript):
        return True
    if isinstance(node, ast.Attribute):
        return _receiver(node) != "ctypes"
    if isinstance(node, ast.Call):
        return _last(node.func) not in _NEVER_NULL and not (
            _last(node.func) in _C_TYPES and not any(_is_open(argument) for argument in node.args)
        )
    return False


def _is_bare(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _last(node.func) in ("addressof", "data_ptr", "id")
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


def _nothing(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, 0)


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _value(node: ast.AST) -> ast.AST | None:
    return node.value if isinstance(node, ast.Attribute) else None


def _receiver(node: ast.AST) -> str:
    return _last(node.value) if isinstance(node, ast.Attribute) else ""
