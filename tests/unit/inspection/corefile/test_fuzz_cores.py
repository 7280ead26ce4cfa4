"""Damaged cores and reports: whatever the bytes, a result or one clear sentence comes out, and soon."""

from __future__ import annotations

import importlib.util
import random
import shutil
from pathlib import Path
from types import ModuleType

import pytest

import places

MUTATIONS = 4000
TRUNCATIONS = 300


def load_fuzz() -> ModuleType:
    path = places.ROOT / "tools" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz = load_fuzz()


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"cores go elsewhere: {pattern}")
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    small: Path = fuzz.make_core(tmp_path_factory.mktemp("core"))
    return small.read_bytes()


def test_the_untouched_core_is_read(core: bytes, tmp_path: Path) -> None:
    assert fuzz.try_core(core, tmp_path) == "read"


def test_mutated_cores_do_no_harm(core: bytes, tmp_path: Path) -> None:
    answers = [fuzz.try_core(fuzz.mutate(core, random.Random(number)), tmp_path) for number in range(MUTATIONS)]
    assert 0 < answers.count("read") < MUTATIONS, "the mutations should neither spare nor break every core"


def test_cores_truncated_anywhere_do_no_harm(core: bytes, tmp_path: Path) -> None:
    rng = random.Random(7)
    header_sizes = range(0, 512, 7)
    sizes = (*header_sizes, *(rng.randrange(len(core)) for _ in range(TRUNCATIONS)))
    answers = [fuzz.try_core(core[:size], tmp_path) for size in sizes]
    assert all(answer != "read" for size, answer in zip(sizes, answers, strict=True) if size < 64)


def test_mutated_reports_do_no_harm() -> None:
    reports = [path.read_bytes() for path in sorted(fuzz.RECORDED.glob("*.json"))]
    answers = []
    for number in range(MUTATIONS):
        rng = random.Random(number)
        answers.append(fuzz.try_report(fuzz.mutate(rng.choice(reports), rng)))
    assert 0 < answers.count("read") < MUTATIONS
