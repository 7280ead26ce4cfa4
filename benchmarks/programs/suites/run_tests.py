"""Runs test modules of the standard library, and notes the outcome of each test at once: a line of JSON each.

python run_tests.py RESULTS MODULE[:PATTERN] …"""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path
from typing import Any

from test import support


class Noting(unittest.TestResult):
    def __init__(self, results: Path) -> None:
        super().__init__()
        self._file = results.open("w")

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self._note(test, "begun")  # and the last one, if the process dies of it

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed")

    def addFailure(self, test: unittest.TestCase, error: Any) -> None:  # noqa: N802
        self._note(test, "failed", error)

    def addError(self, test: unittest.TestCase, error: Any) -> None:  # noqa: N802
        self._note(test, "error", error)

    def addSkip(self, test: unittest.TestCase, _: str) -> None:  # noqa: N802
        self._note(test, "skipped")

    def addExpectedFailure(self, test: unittest.TestCase, _: Any) -> None:  # noqa: N802
        self._note(test, "failed as expected")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed unexpectedly")

    def addSubTest(self, _: unittest.TestCase, subtest: unittest.TestCase, error: Any) -> None:  # noqa: N802
        if error:
            self._note(subtest, "failed", error)

    def _note(self, test: unittest.TestCase, outcome: str, error: Any = None) -> None:
        why = f"{error[0].__name__}: {error[1]}"[:600] if error else ""
        self._file.write(json.dumps([test.id(), outcome, why]) + "\n")
        self._file.flush()


def main() -> None:
    results, *modules = sys.argv[1:]
    support.use_resources = []
    result = Noting(Path(results))
    for word in modules:
        module, _, pattern = word.partition(":")
        loader = unittest.TestLoader()
        loader.testNamePatterns = [f"*{pattern}*"] if pattern else None
        loader.loadTestsFromName(module).run(result)


if __name__ == "__main__":
    main()
