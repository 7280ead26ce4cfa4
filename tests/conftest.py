"""All tests: what their folder says of them.

Some load TensorFlow into the process of the tests. What is forked after that would hang, so they need a process of
their own: `pytest -m loads_tensorflow`, or their folders by name. `pytest` alone runs all others, and does not even
collect them."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LOAD_TENSORFLOW = ("data", "forecasting", "memory", "saving")
MARK = "loads_tensorflow"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    parts = collection_path.relative_to(TESTS).parts if collection_path.is_relative_to(TESTS) else ()
    if not parts or collection_path.is_file():
        return None
    if _is_asked_for(config):
        return True if parts[0] not in LOAD_TENSORFLOW else None
    named = any(TESTS / parts[0] in (path, *path.parents) for path in _named(config))
    return True if parts[0] in LOAD_TENSORFLOW and not named else None


def _is_asked_for(config: pytest.Config) -> bool:
    return str(config.getoption("markexpr")) == MARK


def _named(config: pytest.Config) -> list[Path]:
    return [
        Path(argument.partition("::")[0]).absolute() for argument in config.invocation_params.args if "/" in argument
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder != "unit":
            item.add_marker("slow")
        if folder in LOAD_TENSORFLOW:
            item.add_marker(MARK)
        for mark in item.iter_markers("skipif"):
            reason = str(mark.kwargs.get("reason", "")).lower()
            for word in ("root", "gpu"):
                if word in reason.replace("/", " ").split():
                    item.add_marker(word)
