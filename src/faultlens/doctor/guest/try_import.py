"""Runs in the Python of the user's programs, confined: imports TensorFlow, and tells how it went.

Needs nothing but the standard library, from Python 3.9 on. The request is the only argument, as JSON; the answer is one
JSON object on what was stdout."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from faultlens_sandbox import confinement, guard, limits

MAX_WRITTEN = 64 << 20  # bytes of any file
MAX_TOLD = 400


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.argv[:] = [""]
    answers = os.dup(1)
    os.dup2(2, 1)
    _confine(request)
    told = {}
    for statement in request["statements"]:
        try:
            exec(statement, {})
        except BaseException as error:  # whatever a package raises at its import
            told = _describe(statement, error)
            break
    os.write(answers, json.dumps({"told": told}).encode())
    os._exit(0)  # what runs at exit was not asked for


def _describe(statement: str, error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    last = next((frame for frame in reversed(frames) if os.path.isfile(frame.filename)), None)
    return {
        "statement": statement,
        "error": f"{type(error).__name__}: {error}"[:MAX_TOLD],
        "module": str(getattr(error, "name", None) or ""),
        "place": f"{last.filename}:{last.lineno}" if last else "",
    }


def _confine(request: dict[str, Any]) -> None:
    means = confinement.Means(*request["means"])
    guard.enter(means, [request["folder"]])
    limits.no_core_file()
    limits.at_most_written(MAX_WRITTEN)
    confinement.confine(means, [request["folder"]])
