"""All tests: what their folder says of them.

`pytest` runs everything in one process, `make test` in two: TensorFlow is loaded into the process of some tests, and
what is forked after that would hang, so these come last."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LOAD_TENSORFLOW = ("data", "forecasting", "memory", "saving")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder != "unit":
            item.add_marker("slow")
        if folder in LOAD_TENSORFLOW:
            item.add_marker("loads_tensorflow")
        for mark in item.iter_markers("skipif"):
            reason = str(mark.kwargs.get("reason", "")).lower()
            for word in ("root", "gpu"):
                if word in reason.replace("/", " ").split():
                    item.add_marker(word)
    items.sort(key=lambda item: item.get_closest_marker("loads_tensorflow") is not None)
