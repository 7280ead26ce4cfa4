"""Many threads that call an op at once: are the results what they are alone? Runs in the Python of the user's
programs, from 3.9 on."""

from __future__ import annotations

import sys
import threading
import time
from functools import partial
from typing import Any, Callable  # noqa: UP035 (Python 3.9)

import tensorflow as tf

calls, comparing = sys.modules["faultlens_calls"], sys.modules["faultlens_comparing"]
forms = sys.modules["faultlens_forms"]

THREADS = 8
SECONDS, MOST_ROUNDS = 0.6, 400
SLOW = 0.5  # seconds of a call that each thread makes once

Run = tuple[Any, Callable[[], list[Any]]]


def threads(call: Any) -> dict[str, Any]:
    """Eager, and of one graph, whose kernel they then share. Other calls take part: what is shared by mistake shows
    when sizes differ."""
    everyone = [call, *(calls.Call({**call.asked, **other}) for other in call.asked.get("others", []))]
    start = time.monotonic()
    alone = [each.results() for each in everyone]
    seconds = (time.monotonic() - start) / len(everyone)
    again = [each.results() for each in reversed(everyone)]
    steady = bool(call.asked.get("steady")) and all(map(comparing.same_bits, alone, reversed(again)))
    rounds = MOST_ROUNDS if seconds < SLOW else 1
    for each in everyone:
        each.asked["steady"] = steady
    problems = together([(each, each) for each in everyone], alone, rounds)
    try:
        function = forms.function_of(call, known=False)
    except forms.REFUSALS:
        function = None
    alike = [each for each in everyone if dtypes(each) == dtypes(call) and each.settings == call.settings]
    if function is not None and not problems:
        shared: list[Run] = [
            (each, partial(lambda other: calls.listed(function(*other.tensors)), each)) for each in alike
        ]
        problems = together(shared, [alone[everyone.index(each)] for each in alike], rounds)
    return {"ok": [], "steady": steady, "problems": problems}


def dtypes(call: Any) -> list[Any]:
    return [each.dtype for each in call.tensors]


def together(runs: list[Run], alone: list[list[Any]], rounds: int) -> list[list[str]]:
    problems: list[list[str]] = []
    start = threading.Barrier(THREADS)
    deadline = time.monotonic() + SECONDS

    def work(number: int) -> None:
        start.wait(30)
        for turn in range(rounds):
            which = (number + turn) % len(runs)
            call, run = runs[which]
            try:
                got = calls.values(run())
            except tf.errors.OpError as error:
                if not isinstance(error, tf.errors.ResourceExhaustedError) and not forms.MISSING.search(str(error)):
                    problems.append(["threads-differ", f"{type(error).__name__} in threads only: {calls.words(error)}"])
                return
            if problems or time.monotonic() > deadline:
                return
            problems.extend(
                ["threads-differ", words] for _, words in call.differs(alone[which], got, f"from {THREADS} threads")
            )

    running = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return problems[:1]
