"""The sources that belong together, and every kernel in them followed along its paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.expressions import evaluate
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Symbol
from faultlens.custom_op.check.interpret.walk import TooManyPathsError, Walker
from faultlens.custom_op.check.syntax.functions import Class, Function, classes_in, declared_type, functions_in
from faultlens.custom_op.check.syntax.registered import Kernel, Op, kernels_in, ops_in
from faultlens.custom_op.check.syntax.syntax import Node, Source, name_of, snippet

_ARITHMETIC = ("number_literal", "binary_expression", "parenthesized_expression", "unary_expression", "identifier")
_KERNELS = re.compile(r"OpKernel|DatasetOp|XlaOp|BinaryOp|UnaryOp|BinaryElementWiseOp")


@dataclass(eq=False)
class Followed:
    """A function that somebody outside calls, and what it does."""

    unit: Unit
    function: Function
    events: list[Event]
    owner: Class | None = None
    op: Op | None = None  # where it is known
    kernels: tuple[Kernel, ...] = ()
    whole: bool = True  # all paths were followed
    callback: str = ""

    @property
    def named(self) -> str:
        return (
            self.op.name if self.op else self.kernels[0].op if self.kernels else self.owner.name if self.owner else ""
        )

    @property
    def computes(self) -> bool:
        """A kernel's own function, which TensorFlow calls from any thread."""
        return self.function.name in ("Compute", "ComputeAsync") or bool(self.function.parameter("TF_OpKernelContext"))

    @property
    def own_compute(self) -> bool:
        """Not inherited: a base serves ops that differ."""
        return self.owner is not None and self.function.of_class == self.owner.name

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]


@dataclass
class Unit:
    sources: list[Source]
    headers: list[Source] = field(default_factory=list)  # known, but not judged
    elsewhere: dict[str, Op] = field(default_factory=dict)  # ops that other sources register

    @cached_property
    def ops(self) -> dict[str, Op]:
        return {op.name: op for source in self._all for op in ops_in(source.root)}

    @cached_property
    def kernels(self) -> list[Kernel]:
        return [kernel for source in self._all for kernel in kernels_in(source.root)]

    @cached_property
    def classes(self) -> dict[str, Class]:
        found = {each.name: each for source in reversed(self._all) for each in classes_in(source.root)}
        for function in self.functions:
            if function.of_class in found:
                found[function.of_class].functions.append(function)
        return found

    @cached_property
    def functions(self) -> list[Function]:
        return [function for source in self._all for function in functions_in(source.root)]

    @cached_property
    def function_names(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        for function in self.functions:
            if not function.of_class:
                found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def constants(self) -> dict[str, Symbol]:
        """Names of integers; those that are made of others come after them."""
        found: dict[str, Symbol] = {}
        self.__dict__["constants"] = found  # the walker below asks for them
        for name, node in (pair for source in self._all for pair in _constants(source.root)):
            value = evaluate(Walker(self), node, State()) if node.kind in _ARITHMETIC else UNKNOWN
            if value[0] == "int":
                found[name] = value
        return found

    @cached_property
    def enums(self) -> list[frozenset[str]]:
        """The names of the values of each."""
        found = [node for source in self._all for node in source.root.find("enum_specifier")]
        names = [frozenset(name_of(each.get("name")) for each in node.find("enumerator")) for node in found]
        return [each for each in names if each]

    @cached_property
    def globals(self) -> dict[str, str]:
        """Variables outside of functions that can be changed, and their types."""
        return dict(pair for source in self._all for pair in _globals(source.root))

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names of types: using Row = std::vector<float>, typedef std::vector<float> Row."""
        return dict(pair for source in self._all for pair in _aliases(source.root))

    @property
    def _all(self) -> list[Source]:
        return [*self.sources, *self.headers]

    # ------------------------------------------------------------------------------------- for walkers

    def op(self, name: str) -> Op | None:
        return self.ops.get(name) or self.elsewhere.get(name)

    def class_(self, name: str) -> Class | None:
        return self.classes.get(name)

    def method(self, class_name: str, name: str, arguments: int | None = None) -> Function | None:
        """A function of the class or of a base; None where several could be meant."""
        class_ = self.classes.get(class_name)
        seen = set()
        while class_ is not None and class_.name not in seen:
            named = [each for each in class_.functions if each.name == name]
            fitting = [each for each in named if arguments is None or len(each.parameters) == arguments] or named
            if named:
                return fitting[0] if len(fitting) == 1 or arguments is None else None
            seen.add(class_.name)
            class_ = next((self.classes[base] for base in class_.bases if base in self.classes), None)
        return None

    def function(self, name: str, arguments: int | None = None) -> Function | None:
        """A free function; None where several could be meant."""
        fitting = [
            each for each in self.function_names.get(name, []) if arguments is None or len(each.parameters) >= arguments
        ]
        fitting = [each for each in fitting if len(each.parameters) == arguments] or fitting
        return fitting[0] if len(fitting) == 1 else None

    def shape_events(self, node: Node, op: Op) -> list[Event]:
        """What a shape function does; nothing where it is not written here, or has too many paths."""
        walker = Walker(self, None, op)
        function = self.function(name_of(node)) if node.kind != "lambda_expression" else None
        if node.kind == "lambda_expression":
            symbol = walker.function_value(node)
            function = walker.lambdas.get(symbol[1]) if len(symbol) > 1 else None
        return self._run(walker, function, State()).events if function is not None else []

    # ---------------------------------------------------------------------------------------- followed

    @cached_property
    def followed(self) -> list[Followed]:
        """Kernels, and the other functions that nobody here calls."""
        found = [self._kernel(class_) for class_ in self.classes.values() if self._is_kernel(class_)]
        followed = [each for each in found if each is not None]
        reached = {id(event.place.function) for each in followed for event in each.events}
        reached |= {id(each.function) for each in followed}
        called = {name_of(call.get("function")) for source in self._all for call in source.root.find("call_expression")}
        for function in self.functions:
            if (
                id(function) not in reached
                and self._judged(function.node)
                and not (function.name in called and function.of_class == "")
            ):
                followed.append(self._free(function))
        return followed

    def _is_kernel(self, class_: Class) -> bool:
        return any(_KERNELS.search(base) for base in class_.bases) or any(
            kernel.class_name == class_.name for kernel in self.kernels
        )

    def _judged(self, node: Node) -> bool:
        return any(node.source is source for source in self.sources)

    def _kernel(self, class_: Class) -> Followed | None:
        compute = self.method(class_.name, "Compute") or self.method(class_.name, "ComputeAsync")
        if compute is None or not self._judged(compute.node):
            return None
        kernels = tuple(kernel for kernel in self.kernels if kernel.class_name == class_.name)
        op = self._common([known for kernel in kernels if (known := self.op(kernel.op))])
        walker = Walker(self, class_, op)
        state = State()
        for member in class_.members.values():
            if "const" in member.type and member.name in self.constants:
                state.members[member.name] = self.constants[member.name]
        constructor = class_.constructor
        if constructor is not None:
            self._run(walker, constructor, state)
            state = _after_constructor(walker.ends) or state
        runner = Walker(self, class_, op)
        runner.callback = _callback(compute)
        found = self._run(runner, compute, state)
        return Followed(self, compute, found.events, class_, op, kernels, found.whole, runner.callback)

    def _common(self, ops: list[Op]) -> Op | None:
        """The op, where the class serves one, or several that are alike."""
        alike = len({(len(op.inputs), len(op.outputs)) for op in ops}) == 1
        return ops[0] if alike else None

    def _free(self, function: Function) -> Followed:
        owner = self.classes.get(function.of_class)
        return self._run(Walker(self, owner), function, State())

    def _run(self, walker: Walker, function: Function, state: State) -> Followed:
        whole = True
        walker.ends = []
        try:
            walker.ends = [end for end, _ in walker.follow(function, state)]
        except (TooManyPathsError, RecursionError):
            whole = False
        return Followed(self, function, walker.events, walker.owner, walker.op, (), whole)


def _after_constructor(ends: Iterable[State]) -> State | None:
    """What is known of the members when Compute is called."""
    good = [end for end in ends if end.failed is None]
    if not good:
        return None
    first = good[0]
    facts = tuple(fact for fact in first.facts if all(fact in end.facts for end in good))
    members = {
        name: value for name, value in first.members.items() if all(end.members.get(name) == value for end in good)
    }
    return State(members=members, facts=facts)


def _callback(compute: Function) -> str:
    return compute.parameter("DoneCallback") or "" if compute.name == "ComputeAsync" else ""


def _constants(root: Node) -> Iterable[tuple[str, Node]]:
    for node in root.find("declaration", "field_declaration"):
        if "const" in node.text[:40] and _outside(node):
            for declarator in node.all("declarator"):
                value = declarator.get("value") if declarator.kind == "init_declarator" else node.get("default_value")
                if value is not None and value.kind not in ("argument_list", "initializer_list", "lambda_expression"):
                    yield name_of(declarator), value
    for node in root.find("preproc_def"):
        value, name = node.get("value"), node.get("name")
        if value is not None and name is not None and re.fullmatch(r"[\s()\d]+", value.text):
            yield name.text, next(snippet(f"{value.text};").find("number_literal"), value)


def _outside(node: Node) -> bool:
    """Of functions; constants of classes too."""
    return all(each.kind not in ("compound_statement",) for each in node.above())


def _globals(root: Node) -> Iterable[tuple[str, str]]:
    for node in root.find("declaration"):
        if not _outside(node) or any(each.kind in ("class_specifier", "struct_specifier") for each in node.above()):
            continue
        for declarator in node.all("declarator"):
            kind = declared_type(node, declarator)
            if declarator.kind == "function_declarator" or re.search(r"\bconst(?:expr)?\b(?!.*\*)", kind):
                continue
            if name_of(declarator):
                yield name_of(declarator), kind


def _aliases(root: Node) -> Iterable[tuple[str, str]]:
    for node in root.find("alias_declaration"):
        if (name := node.get("name")) is not None and (type_ := node.get("type")) is not None:
            yield name.text, type_.text
    for node in root.find("type_definition"):
        for declarator in node.all("declarator"):
            yield name_of(declarator), declared_type(node, declarator)


def load(paths: Iterable[Path]) -> Unit:
    """The files, and the headers of their own that they include."""
    sources = [Source.load(path) for path in paths]
    known = {Path(source.path).resolve() for source in sources}
    headers: list[Source] = []
    waiting = list(sources)
    while waiting and len(headers) < 40:
        source = waiting.pop()
        for included in re.findall(rb'^\s*#\s*include\s+"([^"\n]+)"', source.data, re.MULTILINE):
            for path in _candidates(Path(source.path), included.decode("utf-8", "replace")):
                if path.resolve() not in known and path.is_file():
                    known.add(path.resolve())
                    headers.append(Source.load(path))
                    waiting.append(headers[-1])
                    break
    return Unit(sources, headers)


def _candidates(source: Path, included: str) -> Iterable[Path]:
    yield source.parent / included
    parts = Path(included).parts
    for above in list(source.resolve().parents)[:8]:
        if parts and above.name == parts[0]:
            yield above.parent / included
