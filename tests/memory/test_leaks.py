"""Real programs that leak are told so, with what holds the memory; healthy ones are left in peace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from memory_limit import can_be_limited, join, memory_group

from faultlens.agent.area import SharedArea
from faultlens.agent.launch import agent_environment
from faultlens.records import report_file
from faultlens.records.crash import Growth, GrowthKind
from faultlens.records.diagnosis import Diagnosis
from faultlens.supervise.retainers import Inside, read_answer
from faultlens.text.sizes import MIB

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]

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
    told: dict[str, tuple[str, ...]] = dict.fromkeys(
        ["python_objects", "retracing", "variables", "native"], ("memory grows",)
    )
    told["counted"] = ("files grows", "threads grows", "shared memory grows")
    return _all_at_once(LEAKING, told, folder, str(library))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return _all_at_once(
        HEALTHY, dict.fromkeys(["fit", "shuffle", "cycles", "replay"], ()), tmp_path_factory.mktemp("healthy")
    )


def _all_at_once(program: Path, told: dict[str, tuple[str, ...]], folder: Path, *more: str) -> dict[str, Run]:
    """They sleep most of the time. Those that leak go on until that was told."""
    started = {kind: _start(program, kind, folder / kind, *more) for kind in told}
    while any(process.poll() is None for process in started.values()):
        for kind, words in told.items():
            if words and all(word in (folder / kind / "stderr").read_text() for word in words):
                (folder / kind / "enough").touch()
        time.sleep(0.2)
    return {kind: _ended(process, folder / kind) for kind, process in started.items()}


def _start(program: Path, kind: str, folder: Path, *more: str, group: Path | None = None) -> subprocess.Popen[bytes]:
    folder.mkdir()
    run = [sys.executable, "-m", "faultlens", "run", "--no-save", "--json", str(folder / "report.json"), "--"]
    command = [*run, sys.executable, str(program), kind, str(folder), *more]
    with open(folder / "stderr", "wb") as stderr:
        return subprocess.Popen(command, stderr=stderr, preexec_fn=lambda: join(group))


def _ended(process: subprocess.Popen[bytes], folder: Path) -> Run:
    status = process.wait(PATIENCE_S)
    found = report_file.from_json((folder / "report.json").read_bytes())
    growth = {growth.what: growth for growth in found.crash.growth}
    return Run(status, (folder / "stderr").read_text(), growth, found.diagnoses)


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
    assert growth.per_step == pytest.approx(
        {"open files": 0.75, "threads": 0.25, "shared memory": 25_600}[what], rel=0.15
    )
    assert run.status == 0


@pytest.mark.skipif(not can_be_limited(), reason="no control group can be made here")
def test_a_leak_that_kills_is_told_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "tensors"
    with memory_group(LIMIT) as group:
        run = _ended(_start(LEAKING, "tensors", folder, group=group), folder)
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


# ------------------------------------------------------------------------------- without TensorFlow

PLAIN = """
import sys, time
class Loader:
    def __init__(self): self.batches = []
loader = Loader()
for number in range(100_000):
    loader.batches.append(bytes(10_000))
    print(number, flush=True)
    time.sleep(0.002)
"""


def test_a_program_without_tensorflow_answers_too() -> None:
    area = SharedArea()
    environment = agent_environment(dict(os.environ), area.path, follow_children=True)
    with subprocess.Popen([sys.executable, "-c", PLAIN], env=environment, stdout=subprocess.DEVNULL) as program:
        try:
            answers = [_asked(area, program.pid) for _ in range(2)]
        finally:
            program.kill()
    area.close()
    (grown,) = answers[1].grown
    assert (grown.type, grown.owner, grown.items) == ("list", "`.batches` of a Loader object", "bytes")


def _asked(area: SharedArea, pid: int) -> Inside:
    time.sleep(1.0)
    start, deadline = area.notes_size(), time.monotonic() + 30
    area.ask_for_snapshot(pid)
    while time.monotonic() < deadline:
        lines = area.notes_since(start).splitlines()
        if found := [answer for line in lines if (answer := read_answer(line, pid))]:
            return found[0]
        time.sleep(0.05)
    raise TimeoutError("it did not answer")
