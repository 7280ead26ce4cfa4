"""An op with inputs and attributes of every kind dies: the report says exactly what it was given."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from faultlens.inspection.tensorflow.layout import table

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
    pytest.mark.skipif(not shutil.which("g++"), reason="needs g++"),
]

TOOLS = Path(__file__).parent.parent.parent / "tools"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        return importlib.import_module("check_tensorflow_layouts")


@pytest.fixture(scope="module")
def library(tool: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built: Path = tool.build(sys.executable, tmp_path_factory.mktemp("op"))
    return built


@pytest.mark.parametrize("mode", ["eager", "graph", "construct"])
def test_everything_that_an_op_was_given(tool: ModuleType, library: Path, mode: str, tmp_path: Path) -> None:
    crash, given = tool.die(sys.executable, mode, library, tmp_path)
    if given["version"] not in {version for row in table().layouts for version in row.versions}:
        pytest.skip(f"TensorFlow {given['version']} is new: python tools/tensorflow_layouts.py {given['version']}")
    assert tool.differences(crash, given) == []
