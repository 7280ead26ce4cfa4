"""One call by itself: is the result there, is it right, is it always the same, are the inputs what they were?

Runs in the Python of the user's programs, from 3.9 on."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from . import calls, comparing, forms, references, tensors

PATTERNS = (0x4B, 0xC6)  # that new memory is filled with: large numbers of every type, of both signs
LONGEST = 0.5  # seconds of a call that is made several times


def eager(call: Any) -> dict[str, Any]:
    before = calls.contents(call.tensors)
    results = call.results()
    problems = []
    if not comparing.same_bits(before, calls.contents(call.tensors)):
        problems.append(["input-modified", "an input is not what it was before the call"])
    told: dict[str, Any] = {"ok": calls.shapes(results), "problems": problems}
    if call.asked.get("reference"):
        try:
            problems += against_reference(call, results)
        except (Exception, SystemExit) as error:
            told["unreferenced"] = f"the reference raises {type(error).__name__}: {calls.words(error)}"
    problems += forms.missing_in_graph(call)
    return told


def against_reference(call: Any, results: list[Any]) -> list[list[str]]:
    """The function gets and gives what NumPy has."""
    arguments = [
        [each.numpy() for each in value] if isinstance(value, list) else value.numpy()
        for value in call.arguments.values()
    ]
    settings = {name: value for name, _, value in call.asked["settings"]}
    expected = references.function_of(call.asked["reference"])(*arguments, **settings)
    expected = [np.asarray(each) for each in (expected if isinstance(expected, (list, tuple)) else [expected])]
    different = comparing.difference(results, expected)
    return [["wrong-result", f"{different} (the op's first, then the reference's)"]] if different else []


def repeat(call: Any) -> dict[str, Any]:
    """The same input, while new memory is filled with one pattern and with another."""
    told: dict[str, Any] = {"ok": [], "steady": True, "problems": []}
    if call.seconds() > LONGEST:
        return told
    runs: tuple[list[Any], list[Any]] = ([], [])
    for pattern in (0, 0, 1, 1, 0, 1):
        tensors.perturb(PATTERNS[pattern])
        inputs = [tf.identity(each) for each in call.tensors]
        runs[pattern].append(calls.values(call(*inputs)) if inputs else call.results())
        del inputs
    told["steady"] = all(comparing.same_bits(run[0], other) for run in runs for other in run[1:])
    told["ok"] = calls.shapes(runs[0][0])
    if told["steady"] and not comparing.same_bits(runs[0][0], runs[1][0]):
        where = comparing.difference(runs[0][0], runs[1][0]) or "bits of the outputs differ"
        told["problems"].append(["uninitialised-output", where])
    if not told["steady"]:
        different = (comparing.difference(run[0], other) for run in runs for other in run[1:])
        told["varies"] = next((each for each in different if each), "")
    return told
