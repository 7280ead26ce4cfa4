"""The memory of a GPU over time: programs that were recorded on one, and what is taken from the driver's answer."""

from __future__ import annotations

import os

import pytest

import places
from faultlens.diagnosis.evidence.leaks import told
from faultlens.diagnosis.rank import diagnose
from faultlens.records import report_file
from faultlens.records.crash import Crash
from faultlens.supervise.gpu_memory import UNKNOWN, Driver, GpuMemory, used
from faultlens.supervise.growth import trends
from faultlens.text.sizes import MIB

FOLDER = places.RECORDED / "gpu"


def recorded(name: str) -> Crash:
    return report_file.read(FOLDER / f"{name}.json").crash


def test_a_tensor_kept_with_every_step_is_seen_to_grow() -> None:
    """It kept 4 MiB a step, and a pool hands them out in pieces of 20 MiB."""
    crash = recorded("leak")
    (trend,) = (trend for trend in trends(crash.timeline) if trend.what == "GPU memory")
    assert trend.per_step == pytest.approx(4 * MIB, rel=0.05)
    assert trend.steps is not None and trend.steps > 400


def test_the_list_that_kept_them_is_named() -> None:
    (growth,) = recorded("leak").growth
    assert told(growth).startswith("GPU memory grows by 3.9 MiB a step (since step 109): the list `kept`")


def test_a_healthy_training_grows_by_nothing() -> None:
    crash = recorded("healthy")
    assert max(sample.gpu_used or 0 for sample in crash.timeline) > 500 * MIB  # CUDA's own, mostly
    assert [trend.what for trend in trends(crash.timeline)] == []
    assert crash.growth == ()


def test_out_of_memory_says_how_it_grew() -> None:
    first = diagnose(recorded("used_up")).diagnoses[0]
    assert first.cause == "gpu-out-of-memory"
    facts = " | ".join(item.fact for item in first.evidence)
    assert "GPU memory grew by 4 MiB a step (since step 102): from 1.1 GiB to 3.5 GiB" in facts
    assert "the list `kept` (global of exhausting.py) grew by 1 item a step" in facts
    assert first.fixes[0].title.startswith("clear what is kept from step to step")


def test_processes_below_the_program_count_and_no_others() -> None:
    me, parent = os.getpid(), os.getppid()
    found = [(me, 5), (parent, 7), (1 << 22, 9)]
    assert used(iter(found), me) == 5
    assert used(iter(found), parent) == 12
    assert used(iter([(parent, 7)]), me) is None
    assert used(iter([(me, UNKNOWN)]), me) is None


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU")
def test_without_a_driver_nothing_is_told() -> None:
    with pytest.raises(OSError, match="libnvidia-ml"):
        Driver()
    memory = GpuMemory(os.getpid())
    memory._begin = 0.0
    assert memory.last() is None
    assert memory._thread is not None
    memory._thread.join()
    assert memory.last() is None
