"""Real programs that leak are told so, with what holds the memory; healthy ones are left in peace."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from memory_limit import can_be_limited, join, memory_group

from faultlens import reportfile
from faultlens.crash import Growth, GrowthKind
from faultlens.diagnosis import Diagnosis
from faultlens.sizes import MIB

pytestmark = pytest.mark.tensorflow

HERE = Path(__file__).parent
LEAKING, HEALTHY = HERE / "leaking.py", HERE / "healthy.py"
LIMIT = 1000 * MIB
PATIENCE_S = 150


class Run(NamedTuple):
    status: int
    said: str  # stderr
    growth: dict[GrowthKind, Growth]
    diagnoses: tuple[Diagnosis, ...]


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("leaking")
    library = folder / "libleak.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, HERE / "leak.c"], check=True)
    kinds = ["python_objects", "retracing", "variables", "native", "counted"]
    return _all_at_once(LEAKING, kinds, folder, str(library))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return _all_at_once(HEALTHY, ["fit", "shuffle", "cycles", "replay"], tmp_path_factory.mktemp("healthy"))


def _all_at_once(program: Path, kinds: list[str], folder: Path, *more: str) -> dict[str, Run]:
    """They sleep most of the time."""
    started = {kind: _start(program, kind, folder, *more) for kind in kinds}
    return {kind: _ended(process, folder / f"{kind}.json") for kind, process in started.items()}


def _start(program: Path, kind: str, folder: Path, *more: str, group: Path | None = None) -> subprocess.Popen[str]:
    own = folder / kind
    own.mkdir()
    run = [sys.executable, "-m", "faultlens", "run", "--no-save", "--json", f"{folder / kind}.json", "--"]
    command = [*run, sys.executable, str(program), kind, str(own), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: join(group))


def _ended(process: subprocess.Popen[str], report: Path) -> Run:
    with process:
        _, said = process.communicate(timeout=PATIENCE_S)
    found = reportfile.from_json(report.read_bytes())
    return Run(process.returncode, said, {growth.what: growth for growth in found.crash.growth}, found.diagnoses)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LEAKING.read_text().splitlines(), 1) if text in line)


# --------------------------------------------------------------------------------------------- leaks


@pytest.mark.parametrize(
    ("kind", "per_step", "holder", "words"),
    [
        (
            "python_objects",
            400_000,
            "python objects",
            "the dict `.activations` of a Remember object grew by 1 item a step",
        ),
        ("retracing", None, "graph traces", "tf.function `train_step` (leaking.py:"),
        ("variables", 400_000, "tf variables", "tf.Variable: 1 more a step"),
        ("native", 300_000, "native heap", "libleak.so"),
    ],
)
def test_a_leak_of_memory_is_named(
    leaking: dict[str, Run], kind: str, per_step: int | None, holder: str, words: str
) -> None:
    run = leaking[kind]
    growth = run.growth["memory"]
    assert growth.holders and growth.holders[0].kind == holder
    assert words in growth.holders[0].text
    assert growth.per_step == pytest.approx(per_step, rel=0.15) if per_step else growth.per_step
    assert growth.steps_left and growth.limit
    assert run.status == 0
    assert run.said.count("faultlens: memory grows by") == 1


def test_the_line_is_named_that_makes_them(leaking: dict[str, Run]) -> None:
    traced = leaking["retracing"].growth["memory"].holders[0].place
    assert traced and traced.line == line_of("@tf.function")
    made = leaking["variables"].growth["memory"].holders[0].place
    assert made and made.line == line_of("kept.append(tf.Variable")


@pytest.mark.parametrize(
    ("what", "words"),
    [("open files", "part-#"), ("threads", "python"), ("shared memory", "/dev/shm/psm_")],
)
def test_a_leak_of_other_things_is_named(leaking: dict[str, Run], what: GrowthKind, words: str) -> None:
    run = leaking["counted"]
    growth = run.growth[what]
    assert any(words in holder.text for holder in growth.holders)
    assert growth.per_step == pytest.approx({"open files": 1, "threads": 0.5, "shared memory": 51_000}[what], rel=0.15)
    assert run.status == 0


@pytest.mark.skipif(not can_be_limited(), reason="no control group can be made here")
def test_a_leak_that_kills_is_told_as_one(tmp_path: Path) -> None:
    with memory_group(LIMIT) as group, contextlib.ExitStack():
        run = _ended(_start(LEAKING, "tensors", tmp_path, group=group), tmp_path / "tensors.json")
    diagnosis = run.diagnoses[0]
    assert diagnosis.cause == "out-of-memory-kill"
    owner = "a leak: the list `kept` (global of leaking.py) grew by 1 item a step: EagerTensors of float32[200,1000]"
    assert owner in diagnosis.title
    assert any("MiB in" in item.fact and "memory grew by" in item.fact for item in diagnosis.evidence)
    assert any(fix.title == "keep numbers instead of tensors" for fix in diagnosis.fixes)
    assert run.status == -9


# ------------------------------------------------------------------------------------------- healthy


@pytest.mark.parametrize("kind", ["fit", "shuffle", "cycles", "replay"])
def test_a_healthy_program_raises_no_alarm(healthy: dict[str, Run], kind: str) -> None:
    run = healthy[kind]
    assert run.status == 0
    assert not run.growth
    assert "faultlens:" not in run.said
