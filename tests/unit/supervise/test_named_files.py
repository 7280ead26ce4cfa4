"""Files that an exception names, and what they tell of a model that is there and cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultlens.records.crash import Crash, Outcome, Output, Program
from faultlens.supervise.named_files import with_named_files
from recorded_crashes import first

RAISED = """Traceback (most recent call last):
  File "/home/ada/train.py", line 6, in <module>
    tf.keras.models.load_model(p)
  File "/usr/lib/python3/site-packages/keras/src/saving/saving_api.py", line 214, in load_model
    raise ValueError(
ValueError: File not found: filepath={}. Please ensure the file is an accessible `.keras` zip file.
"""


def raised(folder: Path, name: object) -> Crash:
    return Crash(
        outcome=Outcome(kind="exception", exit_code=1),
        method="status",
        program=Program(directory=str(folder)),
        output=Output(stderr=RAISED.format(name)),
    )


@pytest.mark.parametrize("by", [str, lambda path: path.name])
def test_a_model_that_is_there_and_said_to_be_missing(tmp_path: Path, by) -> None:
    model = tmp_path / "m.keras"
    model.write_bytes(b"PK\3\4" + bytes(2000))
    crash = with_named_files(raised(tmp_path, by(model)))
    assert [(state.path, state.size) for state in crash.files] == [(str(model), 2004)]
    found = first(crash)
    assert found.cause == "corrupt-saved-model"
    assert found.title.startswith("m.keras is there")
    assert found.fixes[0].command == f"faultlens verify {model}"


def test_a_model_that_is_missing(tmp_path: Path) -> None:
    crash = with_named_files(raised(tmp_path, tmp_path / "m.keras"))
    assert crash.files == ()
    assert first(crash).cause == "python-exception"


def test_only_exceptions_name_files() -> None:
    crash = Crash(outcome=Outcome(kind="exit", exit_code=2), method="status")
    assert with_named_files(crash) is crash
