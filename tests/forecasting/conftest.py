"""Real models, really trained for a few steps; TensorFlow is imported as seldom as possible."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from asking import PROGRAMS

from faultlens.forecasting.runs import Runs


@pytest.fixture(scope="session")
def runs() -> Iterator[Runs]:
    with Runs(sys.executable, [str(PROGRAMS)]) as started:
        started.wait_until_ready()
        yield started
