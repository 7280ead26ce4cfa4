"""The packaged table of TensorFlow's layouts, and the tool that makes it."""

from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import places
from faultlens.inspection.tensorflow.layout import Layout, table

ROOT = places.ROOT


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("tensorflow_layouts")


def test_every_release_since_2_12_has_one_layout() -> None:
    versions = Counter(version for row in table().layouts for version in row.versions)
    assert set(versions.values()) == {1}
    assert {version.rpartition(".")[0] for version in versions} >= {f"2.{minor}" for minor in range(12, 22)}


def test_a_build_id_belongs_to_one_layout() -> None:
    build_ids = Counter(build_id for row in table().layouts for build_id in row.build_ids)
    assert set(build_ids.values()) == {1}


def test_the_table_holds_what_the_reader_reads_and_nothing_else(tool: ModuleType) -> None:
    for row in msgspec.json.decode(tool.TABLE.read_bytes())["layouts"]:
        assert set(row["offsets"]) == set(Layout.__struct_fields__)


def test_rows_differ() -> None:
    assert len({row.offsets for row in table().layouts}) == len(table().layouts)


def test_releases_with_equal_numbers_share_a_row(tool: ModuleType) -> None:
    rows = tool.add({"layouts": []}, tool.Layout("2.10.0", "aa", {"x": 1}))
    rows = tool.add(rows, tool.Layout("2.9.1", None, {"x": 1}))
    rows = tool.add(rows, tool.Layout("2.8.0", "cc", {"x": 2}))
    assert rows["layouts"] == [
        {"versions": ["2.8.0"], "build_ids": ["cc"], "offsets": {"x": 2}},
        {"versions": ["2.9.1", "2.10.0"], "build_ids": ["aa"], "offsets": {"x": 1}},
    ]


def test_a_release_that_is_measured_again_moves(tool: ModuleType) -> None:
    rows = tool.add({"layouts": []}, tool.Layout("2.8.0", "aa", {"x": 1}))
    rows = tool.add(rows, tool.Layout("2.9.0", "bb", {"x": 1}))
    rows = tool.add(rows, tool.Layout("2.9.0", "bb", {"x": 2, "y": 0}))
    assert rows["layouts"] == [
        {"versions": ["2.8.0"], "build_ids": ["aa"], "offsets": {"x": 1}},
        {"versions": ["2.9.0"], "build_ids": ["bb"], "offsets": {"x": 2, "y": 0}},
    ]


@pytest.mark.tensorflow
@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")
def test_the_headers_of_the_installed_release_give_the_packaged_numbers(tool: ModuleType) -> None:
    tensorflow = importlib.util.find_spec("tensorflow")
    assert tensorflow and tensorflow.origin
    site_packages = Path(tensorflow.origin).parent.parent
    version = tool.version_of(site_packages)
    packaged = [row.offsets for row in table().layouts if version in row.versions]
    if not packaged:
        pytest.skip(f"TensorFlow {version} is new: python tools/tensorflow_layouts.py {version}")
    assert packaged == [msgspec.convert(tool.probe(site_packages / tool.HEADERS), Layout)]
