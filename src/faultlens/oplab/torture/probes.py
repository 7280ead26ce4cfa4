"""Tries an op with one input, in one way, and says what came of it. Runs in the Python of the user's programs, from
3.9 on, in a process that may die of it.

A probe returns what it saw, with "problems": pairs of a rule and of words. What an op refuses is fine."""

from __future__ import annotations

import re
import sys
import threading
from typing import Any, Callable  # noqa: UP035 (Python 3.9)

import numpy as np
import tensorflow as tf

tensors, comparing = sys.modules["faultlens_tensors"], sys.modules["faultlens_comparing"]

MAX_WORDS = 600
MOST_COMPARED = 1 << 22  # bytes of inputs that are looked at again after the call
PATTERNS = (0x2B, 0x95)  # that new memory is filled with
THREADS, ROUNDS, ELEMENTS = 8, 6, 16
MISSING = re.compile(r"Missing \d+-th output|output .{0,20}was not set|returned an invalid tensor")

library: Any = None  # the module of the op's Python functions
Told = dict  # what a probe returns


def tried(asked: dict[str, Any]) -> Told:
    tensors.perturb(PATTERNS[0])
    tensors.fence_every(*asked.get("fence", (1, 0)))
    try:
        told: Told = PROBES[asked["probe"]](Call(asked))
    except tensors.CannotMakeError as error:
        return {"unmade": words(error)}
    except Exception as error:
        return refused(error)
    return told


def refused(error: Exception) -> Told:
    told = {"error": type(error).__name__, "words": words(error)}
    if MISSING.search(str(error)):
        told["problems"] = [["missing-output", words(error)]]
    return told


def words(error: BaseException) -> str:
    return " ".join(str(error).split())[:MAX_WORDS]


class Call:
    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.function: Callable[..., Any] = getattr(library, asked["function"])
        self.arguments = tensors.arguments_of(asked)
        self.settings = tensors.settings_of(asked)
        self.tensors = tensors.flat(self.arguments)

    def __call__(self, *given: Any) -> list[Any]:
        """The outputs, as tensors. With `given`, they take the place of the inputs."""
        arguments = tensors.grouped(self.arguments, given) if given else self.arguments
        return listed(self.function(**arguments, **self.settings))

    def results(self) -> list[Any]:
        return values(self())

    def specs(self, known: bool) -> list[Any]:
        return [tf.TensorSpec(each.shape if known else None, each.dtype) for each in self.tensors]


def listed(result: Any) -> list[Any]:
    if result is None or isinstance(result, tf.Operation):
        return []
    if isinstance(result, (list, tuple)):
        return [each for part in result for each in listed(part)]
    return [result]


def values(outputs: list[Any]) -> list[Any]:
    return [each.numpy() if each.dtype not in (tf.resource, tf.variant) else np.zeros(0) for each in outputs]


def contents(inputs: list[Any]) -> list[Any]:
    plain = [each for each in inputs if each.dtype not in (tf.resource, tf.variant)]
    return [np.array(each.numpy()) for each in plain if int(np.prod(each.shape)) * each.dtype.size < MOST_COMPARED]


# ------------------------------------------------------------------------------------------------ alone


def eager(call: Call) -> Told:
    before = contents(call.tensors)
    outputs = call()
    results = values(outputs)
    problems = []
    for number, each in enumerate(outputs):
        if not each.dtype.as_datatype_enum:
            problems.append(["missing-output", f"output {number} has no type"])
    if not comparing.same_bits(before, contents(call.tensors)):
        problems.append(["input-modified", "an input is not what it was before the call"])
    if call.asked.get("reference"):
        problems += against_reference(call, results)
    return {"ok": [list(each.shape) for each in results], "problems": problems}


def against_reference(call: Call, results: list[Any]) -> list[list[str]]:
    """The function gets and gives what numpy has."""
    arguments = {
        name: [each.numpy() for each in value] if isinstance(value, list) else value.numpy()
        for name, value in call.arguments.items()
    }
    settings = {name: value for name, _, value in call.asked["settings"]}
    try:
        expected = reference_of(call.asked["reference"])(*arguments.values(), **settings)
    except Exception as error:
        return [["reference-failed", f"the reference raises {type(error).__name__}: {words(error)}"]]
    expected = [np.asarray(each) for each in (expected if isinstance(expected, (list, tuple)) else [expected])]
    different = comparing.difference(results, expected)
    return [["wrong-result", f"{different} (the op's first, then the reference's)"]] if different else []


def reference_of(named: list[str]) -> Any:
    """`named`: the folder to look in, the module and the function."""
    import importlib

    folder, module, names = named
    if folder not in sys.path:
        sys.path.insert(0, folder)
    function: Any = importlib.import_module(module)
    for name in names.split("."):
        function = getattr(function, name)
    return function


def repeat(call: Call) -> Told:
    """The same input, while malloc fills new memory with one pattern and with another."""
    runs = []
    for pattern in (0, 0, 1, 1, 0, 1):
        tensors.perturb(PATTERNS[pattern])
        inputs = [tf.identity(each) if each.dtype != tf.resource else each for each in call.tensors]
        runs.append((pattern, values(call(*inputs)) if inputs else call.results()))
        del inputs
    of = [[result for pattern, result in runs if pattern == wanted] for wanted in (0, 1)]
    steady = [all(comparing.same_bits(each[0], other) for other in each[1:]) for each in of]
    told: Told = {"ok": [list(each.shape) for each in runs[0][1]], "steady": all(steady), "problems": []}
    if all(steady) and not comparing.same_bits(of[0][0], of[1][0]):
        where = comparing.difference(of[0][0], of[1][0]) or "bits of the outputs differ"
        told["problems"].append(["uninitialised-output", where])
    return told


# ------------------------------------------------------------------------------------------ other forms


def graph(call: Call) -> Told:
    """In a graph that knows the shapes, and in one that does not."""
    alone = call.results()
    told: Told = {"ok": [list(each.shape) for each in alone], "problems": [], "shapes": [], "refused": ""}
    for known in (True, False):
        function = tf.function(lambda *given: call(*given), input_signature=call.specs(known), autograph=False)
        try:
            traced = function.get_concrete_function()
        except (ValueError, TypeError, tf.errors.OpError) as error:
            told["refused"] = told["refused"] or words(error)
            continue
        static = [each.shape for each in listed(traced.structured_outputs)]
        told["shapes"].append(
            [None if each.rank is None else [-1 if d is None else d for d in each] for each in static]
        )
        results = values(listed(function(*call.tensors)))
        told["problems"] += disagreements(static, results, "known" if known else "not known")
        told["problems"] += different_from(alone, results, call, "in a graph")
    return told


def disagreements(static: list[Any], results: list[Any], what: str) -> list[list[str]]:
    found = []
    for number, (shape, result) in enumerate(zip(static, results)):
        if not shape.is_compatible_with(result.shape):
            told = f"the shape function says {shape} for output {number}, it has {list(result.shape)}"
            found.append(["shape-disagrees", f"{told} (shapes of the inputs {what})"])
    return found


def different_from(alone: list[Any], results: list[Any], call: Call, where: str) -> list[list[str]]:
    if not call.asked.get("steady"):
        return []
    different = comparing.difference(alone, results)
    return [["differs", f"{different} (eager first, then {where})"]] if different else []


def dataset(call: Call) -> Told:
    alone = call.results()
    kept = call.tensors
    mapped = tf.data.Dataset.range(ELEMENTS).map(lambda _: tuple(call(*kept)) or 0, num_parallel_calls=4)
    problems: list[list[str]] = []
    for element in mapped:
        if alone and not problems:
            problems += different_from(alone, values(listed(element)), call, "in tf.data with parallel calls")
    return {"ok": [list(each.shape) for each in alone], "problems": problems}


def vectorized(call: Call) -> Told:
    alone = call.results()
    if not call.tensors or not alone:
        return {"ok": [], "problems": []}
    stacked = [tf.stack([each] * 3) for each in call.tensors]
    mapped = tf.vectorized_map(lambda given: tuple(call(*given)), tuple(stacked))
    first = [each[0] for each in values(listed(mapped))]
    return {"ok": [], "problems": different_from(alone, [np.asarray(e) for e in first], call, "in vectorized_map")}


def compiled(call: Call) -> Told:
    alone = call.results()
    function = tf.function(lambda *given: call(*given), jit_compile=True, autograph=False)
    results = values(listed(function(*call.tensors)))
    return {"ok": [], "problems": different_from(alone, results, call, "compiled by XLA")}


# ------------------------------------------------------------------------------------------- threads


def threads(call: Call) -> Told:
    """The same calls from many threads as before from one: eager, and of one graph, whose kernel they then share."""
    others = [Call({**call.asked, **other}) for other in call.asked.get("others", [])]
    calls = [call, *others]
    alone = [each.results() for each in calls]
    again = [each.results() for each in calls]
    steady = all(map(comparing.same_bits, alone, again))
    for each in calls:
        each.asked["steady"] = steady
    problems = together([(each, each) for each in calls], alone)
    function = tf.function(lambda *given: call(*given), input_signature=call.specs(False), autograph=False)
    shared = [(each, lambda each=each: listed(function(*each.tensors))) for each in calls if alike(call, each)]
    try:
        function.get_concrete_function()
    except (ValueError, TypeError, tf.errors.OpError):
        shared = []
    problems += together(shared, alone)
    return {"ok": [], "steady": steady, "problems": problems[:1]}


def alike(one: Call, other: Call) -> bool:
    return [each.dtype for each in one.tensors] == [each.dtype for each in other.tensors]


def together(calls: list[tuple[Call, Callable[[], list[Any]]]], alone: list[list[Any]]) -> list[list[str]]:
    problems: list[list[str]] = []
    start = threading.Barrier(THREADS)

    def work(number: int) -> None:
        start.wait(30)
        for turn in range(ROUNDS):
            which = (number + turn) % len(calls)
            call, run = calls[which]
            try:
                got = values(run())
            except Exception as error:
                problems.append(["threads-differ", f"{type(error).__name__} in threads only: {words(error)}"])
                return
            if found := different_from(alone[which], got, call, f"from {THREADS} threads at once"):
                problems.append(["threads-differ", found[0][1]])

    if not calls:
        return []
    running = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return problems[:1]


def in_a_row(call: Call) -> Told:
    """What many equal calls give, one after the other or from many threads: as a set, with how often."""
    count, parallel = call.asked["count"], call.asked["parallel"]
    mapped = tf.data.Dataset.range(count).map(
        lambda _: tuple(call(*call.tensors)), num_parallel_calls=THREADS if parallel else None, deterministic=False
    )
    seen: dict[str, int] = {}
    for element in mapped:
        key = repr([each.tolist() for each in values(listed(element))])[:80]
        seen[key] = seen.get(key, 0) + 1
    return {"ok": [], "problems": [], "seen": sorted(seen.items())[:40], "kinds": len(seen)}


PROBES: dict[str, Callable[[Call], Told]] = {
    "eager": eager,
    "repeat": repeat,
    "graph": graph,
    "dataset": dataset,
    "vectorized": vectorized,
    "compiled": compiled,
    "threads": threads,
    "in a row": in_a_row,
}
