"""Many threads that call an op at once: are the results what they are alone? Runs in the Python of the user's
programs, from 3.9 on.

An op may keep an input on purpose, and refuse or treat later ones by it. So what differs in threads is held against
them only where one call after the other, with the same kernel, gives again what it gave before."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable

import tensorflow as tf

from . import calls, comparing, forms

THREADS = 8
SECONDS, MOST_ROUNDS = 0.6, 400
SLOW = 0.5  # seconds of a call that each thread makes once

Run = tuple[Any, Callable[[], list[Any]]]


def threads(call: Any) -> dict[str, Any]:
    """Eager, and of one graph, whose kernel they then share. Other calls take part: what is shared by mistake shows
    when sizes differ."""
    start = time.monotonic()
    alone = [call.results()]
    rounds = MOST_ROUNDS if time.monotonic() - start < SLOW else 1
    everyone = [call]
    for other in call.asked.get("others", []):
        each = calls.Call({**call.asked, **other})
        try:
            alone.append(each.results())
        except tf.errors.OpError:  # after the others: it was accepted when it came first
            continue
        everyone.append(each)
    again = [each.results() for each in reversed(everyone)]
    steady = bool(call.asked.get("steady")) and all(map(comparing.same_bits, alone, reversed(again)))
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
    problems: list[tuple[int, str]] = []  # which of the runs, and in words
    start = threading.Barrier(THREADS)
    deadline = time.monotonic() + SECONDS

    def work(number: int) -> None:
        start.wait(30)
        for turn in range(rounds):
            which = (number + turn) % len(runs)
            if words := difference(runs[which], alone[which], f"from {THREADS} threads"):
                problems.append((which, words))
            if problems or time.monotonic() > deadline:
                return

    running = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    by_threads = (words for which, words in problems if not difference(runs[which], alone[which], "by itself"))
    return [["threads-differ", words] for words in by_threads][:1]


def difference(run: Run, alone: list[Any], where: str) -> str:
    """Between what a call gives now and what it gave at first, in words."""
    call, made = run
    try:
        return next((words for _, words in call.differs(alone, calls.values(made()), where)), "")
    except tf.errors.ResourceExhaustedError:
        return ""
    except tf.errors.OpError as error:
        words = f"{type(error).__name__} in threads only: {calls.words(error)}"
        return "" if forms.MISSING.search(str(error)) else words
