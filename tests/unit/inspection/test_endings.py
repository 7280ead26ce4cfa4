"""How an end is told from the wait status and the last words."""

from __future__ import annotations

import pytest

from faultlens.inspection.endings import outcome_of
from faultlens.records.crash import Outcome

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nValueError: bad\n'


@pytest.mark.parametrize(
    ("status", "stderr", "outcome"),
    [
        (0, "", Outcome(kind="ok", exit_code=0)),
        (0, TRACEBACK, Outcome(kind="ok", exit_code=0)),
        (1 << 8, TRACEBACK, Outcome(kind="exception", exit_code=1)),
        (1 << 8, TRACEBACK.replace("ValueError: bad", "tensorflow.python.errors_impl.NotFoundError"),
         Outcome(kind="exception", exit_code=1)),
        (1 << 8, '  File "main.py", line 3\n    if x\n        ^\nSyntaxError: expected a colon\n',
         Outcome(kind="exception", exit_code=1)),
        (1 << 8, "failed\n", Outcome(kind="exit", exit_code=1)),
        (1 << 8, None, Outcome(kind="exit", exit_code=1)),
        (139 << 8, "", Outcome(kind="exit", exit_code=139)),
        (11, "", Outcome(kind="signal", signal="SIGSEGV")),
        (11 | 0x80, "", Outcome(kind="signal", signal="SIGSEGV", core_dumped=True)),
    ],
)  # fmt: skip
def test_outcomes(status: int, stderr: str | None, outcome: Outcome) -> None:
    assert outcome_of(status, stderr) == outcome
