"""The sources that belong together, and every kernel in them interpreted along its paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faultlens.custom_op.check.interpret.call_symbols import Lambda
from faultlens.custom_op.check.interpret.events import Event
from faultlens.custom_op.check.interpret.handlers import HANDLERS
from faultlens.custom_op.check.interpret.program import Program
from faultlens.custom_op.check.interpret.state import State
from faultlens.custom_op.check.interpret.symbols import UNKNOWN, Int
from faultlens.custom_op.check.interpret.walk import TooManyPathsError, Walker
from faultlens.custom_op.check.syntax.functions import Class, Function
from faultlens.custom_op.check.syntax.registered import Kernel, Op
from faultlens.custom_op.check.syntax.syntax import Node, Source, name_of

_ARITHMETIC = ("number_literal", "binary_expression", "parenthesized_expression", "unary_expression", "identifier")
_KERNELS = re.compile(r"OpKernel|DatasetOp|XlaOp|BinaryOp|UnaryOp|BinaryElementWiseOp")


@dataclass(eq=False)
class FunctionSummary:
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


class Unit(Program):
    @cached_property
    def constants(self) -> dict[str, Int]:
        """Names of integers; those that are made of others come after them."""
        found: dict[str, Int] = {}
        walker = Walker(HANDLERS, self, found.get)
        for name, node in self.constant_expressions():
            value = walker.evaluate(node, State()) if node.kind in _ARITHMETIC else UNKNOWN
            if isinstance(value, Int):
                found[name] = value
        return found

    def shape_events(self, node: Node, op: Op) -> list[Event]:
        """What a shape function does; nothing where it is not written here, or has too many paths."""
        walker = self._walker(None, op)
        function = self.function(name_of(node)) if node.kind != "lambda_expression" else None
        if node.kind == "lambda_expression":
            symbol = walker.evaluate(node, State())
            function = walker.lambdas.get(symbol.place) if isinstance(symbol, Lambda) else None
        return self._run(walker, function, State()).events if function is not None else []

    @cached_property
    def summaries(self) -> list[FunctionSummary]:
        """Kernels, and the other functions that nobody here calls."""
        found = [self._kernel(class_) for class_ in self.classes.values() if self._is_kernel(class_)]
        summaries = [each for each in found if each is not None]
        reached = {id(event.point.function) for each in summaries for event in each.events}
        reached |= {id(each.function) for each in summaries}
        called = {
            name_of(call.get("function")) for source in self.files for call in source.root.find("call_expression")
        }
        for function in self.functions:
            if (
                id(function) not in reached
                and self.judges(function.node)
                and not (function.name in called and function.of_class == "")
            ):
                summaries.append(self._free(function))
        return summaries

    def _is_kernel(self, class_: Class) -> bool:
        return any(_KERNELS.search(base) for base in class_.bases) or any(
            kernel.class_name == class_.name for kernel in self.kernels
        )

    def _walker(self, owner: Class | None = None, op: Op | None = None) -> Walker:
        return Walker(HANDLERS, self, lambda name: self.constants.get(name), owner, op)

    def _kernel(self, class_: Class) -> FunctionSummary | None:
        compute = self.method(class_.name, "Compute") or self.method(class_.name, "ComputeAsync")
        if compute is None or not self.judges(compute.node):
            return None
        kernels = tuple(kernel for kernel in self.kernels if kernel.class_name == class_.name)
        op = self._common([known for kernel in kernels if (known := self.op(kernel.op))])
        walker = self._walker(class_, op)
        state = State()
        for member in class_.members.values():
            if "const" in member.type and member.name in self.constants:
                state.members[member.name] = self.constants[member.name]
        constructor = class_.constructor
        if constructor is not None:
            self._run(walker, constructor, state)
            state = _after_constructor(walker.ends) or state
        runner = self._walker(class_, op)
        runner.callback = _callback(compute)
        found = self._run(runner, compute, state)
        return FunctionSummary(self, compute, found.events, class_, op, kernels, found.whole, runner.callback)

    def _common(self, ops: list[Op]) -> Op | None:
        """The op, where the class serves one, or several that are alike."""
        alike = len({(len(op.inputs), len(op.outputs)) for op in ops}) == 1
        return ops[0] if alike else None

    def _free(self, function: Function) -> FunctionSummary:
        owner = self.classes.get(function.of_class)
        return self._run(self._walker(owner), function, State())

    def _run(self, walker: Walker, function: Function, state: State) -> FunctionSummary:
        whole = True
        walker.ends = []
        try:
            walker.ends = [end for end, _ in walker.follow(function, state)]
        except (TooManyPathsError, RecursionError):
            whole = False
        return FunctionSummary(self, function, walker.events, walker.owner, walker.op, (), whole)


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
