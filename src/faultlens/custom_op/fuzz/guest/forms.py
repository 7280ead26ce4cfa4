"""The other forms that an op is called in: graphs, tf.data, vectorized_map, XLA. Runs in the Python of the user's
programs, from 3.9 on."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import tensorflow as tf

from . import calls

ELEMENTS = 16
PLENTY = 1.0  # seconds for all elements
REFUSALS = (ValueError, TypeError, tf.errors.OpError)
MISSING = re.compile(r"Missing \d+-th output|Retval\[\d+\] does not have value")
MOST_FUNCTIONS, SEEN_BEFORE = 64, 2

functions: dict[str, Any] = {}  # by types and attributes; a number while one was not worth making


def graph(call: Any) -> dict[str, Any]:
    """In a graph that knows the shapes, and in one that does not."""
    alone = call.results()
    told: dict[str, Any] = {"ok": calls.shapes(alone), "problems": [], "shapes": [], "refused": ""}
    told["given"] = [list(each.shape) for each in call.tensors]
    for known in (True, False):
        try:
            function = function_of(call, known)
        except REFUSALS as error:
            told["refused"] = told["refused"] or calls.words(error)
            continue
        static = [each.shape for each in calls.listed(function.structured_outputs)]
        told["shapes"].append([None if each.rank is None else str(each) for each in static])
        results = calls.values(calls.listed(function(*call.tensors)))
        told["problems"] += disagreements(static, results, "known" if known else "not known")
        told["problems"] += call.differs(alone, results, "in a graph")
    return told


def function_of(call: Any, known: bool) -> Any:
    function = tf.function(lambda *given: call(*given), input_signature=call.specs(known), autograph=False)
    return function.get_concrete_function()


def disagreements(static: list[Any], results: list[Any], what: str) -> list[list[str]]:
    found = []
    for number, (shape, result) in enumerate(zip(static, results)):
        if not shape.is_compatible_with(result.shape):
            told = f"the shape function says {shape} for output {number}, it has {list(result.shape)}"
            found.append(["shape-disagrees", f"{told} (shapes of the inputs {what})"])
    return found


def missing_in_graph(call: Any) -> list[list[str]]:
    """Eager calls do not tell that an output is missing; a graph does, and once it is made it takes no time."""
    key = repr([[each.dtype for each in call.tensors], call.asked["settings"], call.asked["function"]])
    known = functions.get(key, 0)
    if isinstance(known, int):
        functions[key] = known + 1
        if known != (0 if call.asked["settings"] else SEEN_BEFORE) or len(functions) > MOST_FUNCTIONS:
            return []
        try:
            functions[key] = function_of(call, known=False)
        except REFUSALS:
            return []
        known = functions[key]
    try:
        known(*call.tensors)
    except tf.errors.OpError as error:
        if MISSING.search(str(error)):
            return [["missing-output", calls.words(error)]]
    return []


def dataset(call: Any) -> dict[str, Any]:
    start = time.monotonic()
    alone = call.results()
    elements = ELEMENTS if time.monotonic() - start < PLENTY / ELEMENTS else 2
    kept = call.tensors
    mapped = tf.data.Dataset.range(elements).map(lambda _: tuple(call(*kept)) or 0, num_parallel_calls=4)
    problems: list[list[str]] = []
    for element in mapped:
        if alone and not problems:
            problems += call.differs(alone, calls.values(calls.listed(element)), "in tf.data with parallel calls")
    return {"ok": calls.shapes(alone), "problems": problems}


def vectorized(call: Any) -> dict[str, Any]:
    alone = call.results()
    if not call.tensors or not alone:
        return {"ok": [], "problems": []}
    stacked = [tf.stack([each] * 3) for each in call.tensors]
    mapped = tf.vectorized_map(lambda given: tuple(call(*given)), tuple(stacked))
    first = [np.asarray(each[0]) for each in calls.values(calls.listed(mapped))]
    return {"ok": calls.shapes(first), "problems": call.differs(alone, first, "in vectorized_map")}


def compiled(call: Any) -> dict[str, Any]:
    alone = call.results()
    function = tf.function(lambda *given: call(*given), jit_compile=True, autograph=False)
    results = calls.values(calls.listed(function(*call.tensors)))
    return {"ok": calls.shapes(results), "problems": call.differs(alone, results, "compiled by XLA")}
