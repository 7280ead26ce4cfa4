"""Tries an op with one input, in one way, and says what came of it. Runs in the Python of the user's programs, from
3.9 on, in a process that may die of it.

A probe returns what it saw, with "problems": pairs of a rule and of words. What an op refuses is fine."""

from __future__ import annotations

from typing import Any, Callable

from . import alone, calls, crowds, forms, gradients, growing, tensors

PROBES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "eager": alone.eager,
    "repeat": alone.repeat,
    "graph": forms.graph,
    "dataset": forms.dataset,
    "vectorized": forms.vectorized,
    "compiled": forms.compiled,
    "threads": crowds.threads,
    "leak": growing.growing,
    "gradient": gradients.gradient,
}


def tried(asked: dict[str, Any]) -> dict[str, Any]:
    tensors.perturb(alone.PATTERNS[0])
    tensors.fence_every(*asked.get("fence", (1, 0)))
    tensors.shift_guards()
    try:
        call = calls.Call(asked)
        with tensors.no_more_than(asked.get("room")):
            return PROBES[asked["probe"]](call)
    except tensors.CannotMakeError as error:
        return {"unmade": calls.words(error)}
    except Exception as error:
        told: dict[str, Any] = {"error": type(error).__name__, "words": calls.words(error)}
        if forms.MISSING.search(str(error)):
            told["problems"] = [["missing-output", calls.words(error)]]
        return told
