"""One warm process for all tests of saving: see warm.py."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import injector
import pytest
from warm import Warm


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    if reason := injector.missing():
        pytest.skip(reason)
    with Warm(tmp_path_factory.mktemp("saving")) as server:
        yield server
