"""Which Python functions does a pipeline call, and from several threads at once?

TensorFlow has no public way to ask. What is read here has been the same from 2.15 to 2.21; where it is not, nothing is
found, and nothing is said."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_CALLS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")


class PythonPart(NamedTuple):
    function: Callable[..., Any]
    dataset: Any  # the step that calls it
    parallel: bool
    generator: bool  # given to from_generator
    in_place: bool  # what it returns may be used without a copy


def steps(dataset: Any) -> Iterator[Any]:
    """The data set and all that it is made from."""
    waiting, seen = [dataset], set[int]()
    while waiting:
        step = waiting.pop()
        if id(step) not in seen:
            seen.add(id(step))
            yield step
            waiting += getattr(step, "_inputs", list)()


def python_parts(dataset: Any) -> list[PythonPart]:
    found: dict[int, PythonPart] = {}
    for step in steps(dataset):
        for op, token in _calls(step):
            function = _function(token)
            generator = _generator(function)
            if generator is not None:
                part = PythonPart(generator, step, is_parallel(step), generator=True, in_place=op != "EagerPyFunc")
            elif function is not None and not _is_tensorflows(function):
                part = PythonPart(function, step, is_parallel(step), generator=False, in_place=op != "EagerPyFunc")
            else:
                continue
            found.setdefault(id(part.function), part)
    return list(found.values())


def is_parallel(step: Any) -> bool:
    calls = getattr(step, "_num_parallel_calls", None)
    try:
        return calls is not None and int(calls) != 1
    except (TypeError, ValueError):
        return False


def _calls(step: Any) -> Iterator[tuple[str, str]]:
    for wrapper in getattr(step, "_functions", list)():
        try:
            graph = wrapper.function.graph.as_graph_def()
        except (AttributeError, ValueError):
            continue
        inner = (node for function in graph.library.function for node in function.node_def)
        for node in (*graph.node, *inner):
            if node.op in _CALLS:
                yield node.op, node.attr["token"].s.decode()


def _function(token: str) -> Callable[..., Any] | None:
    try:
        from tensorflow.python.ops import script_ops

        function = script_ops._py_funcs._funcs.get(token)
    except (ImportError, AttributeError):
        return None
    function = getattr(function, "_func", function)  # of py_function
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function) if callable(function) else None


def _generator(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """What the program gave to from_generator, if this is the function that asks it for elements."""
    if getattr(function, "__name__", "") != "generator_py_func":
        return None
    state = inspect.getclosurevars(function).nonlocals.get("generator_state") if function else None
    generator = getattr(state, "_generator", None)
    return generator if callable(generator) else None


def _is_tensorflows(function: Callable[..., Any]) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module.split(".")[0] in ("tensorflow", "keras", "tf_keras")
