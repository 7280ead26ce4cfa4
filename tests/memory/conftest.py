"""Programs below a memory limit, watched as `faultlens run` watches them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "saving"))  # memory_limit.py

from growing import Trainings
from memory_limit import can_be_limited


@pytest.fixture(scope="session")
def trainings() -> Iterator[Trainings]:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    if not can_be_limited():
        pytest.skip("needs the right to make a control group")
    with Trainings() as server:
        yield server
