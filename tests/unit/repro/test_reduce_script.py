"""Programs shrink to what is needed for their end, which stands here for a crash."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import pytest

from faultlens.op_model.shrink_op import OutOfTimeError
from faultlens.repro.reduce_script import count_lines, reduce

PROGRAM = '''
"""Trains something."""
import os, sys
import json

CONFIG = {"a": 31, "b": 512, "c": "text"}


class Thing:
    def __init__(self, n):
        self.n = n
        self.extra = [i for i in range(n)]

    def run(self, k, scale=2):
        total = 0
        for i in range(k):
            if i % 2:
                total += i * scale
        return total


def helper(x, y=3):
    print("helping", x)
    z = x + y
    return z * 2


def other():
    return 42


def main():
    t = Thing(CONFIG["a"])
    print(t.run(10))
    with open(os.devnull) as f:
        data = f.read()
    try:
        value = helper(CONFIG["b"], y=4)
    except ValueError:
        value = None
    print("value", value)
    for attempt in range(3):
        crash(value)
    print("done", other())


if __name__ == "__main__":
    main()
'''


class Crash(BaseException):
    """What crash(value) brings about, in the place of a signal."""


def dies_of(sources: dict[str, str], how: Callable[[object], bool]) -> bool:
    """Run the program; whether it dies, and of a value that counts."""

    def crash(value: object = None) -> None:
        raise Crash(value)

    names = {"__name__": "__main__", "crash": crash}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(sources["reproduce.py"], "reproduce.py", "exec"), names)
    except Crash as end:
        return how(end.args[0])
    except (Exception, SystemExit):
        return False
    return False


def reduced(program: str, how: Callable[[object], bool] = lambda _: True) -> str:
    found = reduce({"reproduce.py": program}, lambda sources: dies_of(sources, how))
    assert dies_of(found, how)
    return found["reproduce.py"]


def test_a_program_of_forty_lines_becomes_one() -> None:
    assert reduced(PROGRAM) == "crash()"


def test_what_the_crash_depends_on_stays() -> None:
    found = reduced(PROGRAM, lambda value: isinstance(value, int) and value > 100)
    assert count_lines(found) == 1
    assert found.startswith("crash(")


@pytest.mark.parametrize(
    ("program", "smallest"),
    [
        ("for x in (1, 2, 3):\n    if x == 3:\n        crash(x)", "crash(3)"),
        ("for k, v in {'a': 1, 'b': 3}.items():\n    crash(v) if v == 3 else None", "crash(3)"),
        ("def f(a, b):\n    c = a - b\n    return c\ncrash(f(8, b=5))", "crash(3)"),
        ("def main():\n    n = 3\n    crash(n)\nmain()", "crash(3)"),
        ("try:\n    crash([1, 2, 3][2])\nfinally:\n    print()", "crash(3)"),
        ("with open('/dev/null') as f:\n    crash(3)", "crash(3)"),
        ("class A:\n    size = 3\n    def go(self):\n        crash(self.size)\nA().go()", None),
        ("import os, sys, json\ncrash(3 if sys.argv else 4)\nprint(os, json)", "crash(3)"),
        ("import os, operator\ncrash(operator.index(3))", "crash(3)"),
        ("import os as system, json\nn = 3\nassert system and json\ncrash(n)", "crash(3)"),
        ("@staticmethod\ndef f():\n    crash(3)\nf()", None),
    ],
)
def test_blocks_functions_and_names_give_way(program: str, smallest: str | None) -> None:
    found = reduced(program, lambda value: value == 3)
    assert found == smallest if smallest else count_lines(found) <= count_lines(program)


def test_imports_that_are_not_needed_go() -> None:
    found = reduced("import os, math, json\nif math.pi > 3:\n    crash(math)", lambda value: hasattr(value, "pi"))
    assert found == "import math\ncrash(math)"


def test_numbers_shrink_as_far_as_they_may() -> None:
    found = reduced("crash([0] * (64 * 128))", lambda value: isinstance(value, list) and len(value) > 100)
    assert found in ("crash([0] * 128)", "crash([0] * (2 * 64))")


def test_modules_that_are_not_needed_go() -> None:
    sources = {"reproduce.py": "import helpers\ncrash(3)", "helpers.py": "def f():\n    return 3\n"}
    found = reduce(sources, lambda sources: dies_of(sources, lambda value: value == 3))
    assert found == {"reproduce.py": "crash(3)"}


def test_modules_that_are_needed_become_smaller() -> None:
    sources = {"reproduce.py": "import helpers", "helpers.py": "import os\nN = 3\nprint(os)\ncrash(N)\nprint(N)"}
    found = reduce(
        sources, lambda each: dies_of({"reproduce.py": each.get("helpers.py", "")}, lambda value: value == 3)
    )
    assert found["helpers.py"] == "crash(3)"


def test_what_cannot_be_parsed_stays_as_it_is() -> None:
    assert reduce({"reproduce.py": "this is no Python ("}, lambda _: True) == {"reproduce.py": "this is no Python ("}


def test_no_trial_is_spent_on_names_that_are_gone() -> None:
    tried: list[str] = []

    def test(sources: dict[str, str]) -> bool:
        tried.append(sources["reproduce.py"])
        return dies_of(sources, lambda value: value == 3)

    reduce({"reproduce.py": "a = 1\nb = a + 2\ncrash(b)"}, test)
    assert not any("a + 2" in text and "a = 1" not in text for text in tried)


def test_what_was_found_counts_when_time_is_up() -> None:
    left = [15]

    def slow(sources: dict[str, str]) -> bool:
        left[0] -= 1
        if left[0] < 0:
            raise OutOfTimeError
        return dies_of(sources, lambda _: True)

    found = reduce({"reproduce.py": PROGRAM}, slow)["reproduce.py"]
    assert 0 < count_lines(found) < count_lines(PROGRAM)


def test_lines_that_count() -> None:
    assert count_lines("# a comment\n\nimport os\n   \n    # more\nx = 1  # not only a comment\n") == 2
