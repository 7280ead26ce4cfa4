"""`--stop-before-oom`: trainings that the kernel would kill end with a checkpoint of their last batch."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from growing import BATCHES, Ended, Plan, Trainings

from faultlens.model_files.generations import newest_whole
from faultlens.supervise.oom_stop import StopAt
from faultlens.text.sizes import GIB

STOP = StopAt(share=0.95)
LARGE = 1 << 19  # weights: 2 MiB, and with those of the optimizer 6
SLOW = [
    Plan(grows=5),
    Plan(grows=8, when="batch, after the checkpoint"),
    Plan(grows=8, save_freq=10, background=True),
    Plan(grows=12, save_freq=7),
    Plan(grows=5, when="evaluation"),
    Plan(grows=5, when="evaluation", save_freq=11, background=True),
    Plan(grows=24, when="epoch"),
    Plan(grows=15, save_freq=1, weights=LARGE),  # most of its time it saves
    Plan(grows=20, save_freq=1, weights=LARGE, background=True),
    Plan(grows=20, pause=0.05),
]
# Without a pause, how fast they grow would depend on the machine: some fill their group between two looks.
FAST = [
    Plan(grows=50),
    Plan(grows=80, save_freq=1, weights=LARGE),
    Plan(grows=80, save_freq=2, background=True),
    Plan(grows=100, pause=0.03),
    Plan(grows=120, when="batch, after the checkpoint", save_freq=3, pause=0.03),
    Plan(grows=150, save_freq=1),
]
FASTEST = [
    Plan(grows=50, when="evaluation"),
    Plan(grows=200, pause=0.02),
    Plan(grows=300, pause=0.05),
    Plan(grows=300, when="batch, after the checkpoint", pause=0.05),
]
TRIES = 5  # other tests may have both CPUs when it matters
LIMITS = [(plan, limit) for plans, limit in ((SLOW, GIB // 2), (FAST, GIB), (FASTEST, 2 * GIB)) for plan in plans]


def saved_batches(path: Path) -> int | None:
    """After how many batches the newest save was made that is whole to the last byte."""
    found, _ = newest_whole(path)
    state = found.manifest.training if found and found.manifest else None
    return state["epoch"] * BATCHES + state["step"] if state else None


@pytest.mark.parametrize(("plan", "limit"), LIMITS, ids=[f"{number}" for number in range(1, len(LIMITS) + 1)])
def test_it_ends_with_a_checkpoint_of_its_last_batch(
    trainings: Trainings, tmp_path: Path, plan: Plan, limit: int
) -> None:
    for number in range(TRIES):
        path = tmp_path / f"{number}" / "model.keras"
        path.parent.mkdir()
        ended = trainings.run(replace(plan, path=str(path)), limit, STOP)
        if ended.status != -signal.SIGKILL:
            break
    assert ended.status == -signal.SIGTERM, ended
    assert ended.request is not None and ended.request.limit == limit
    assert saved_batches(path) == ended.batches > 0


@pytest.mark.parametrize(("plan", "limit"), [LIMITS[0], LIMITS[-1]], ids=["slow", "fast"])
def test_without_it_the_kernel_kills(trainings: Trainings, tmp_path: Path, plan: Plan, limit: int) -> None:
    path = tmp_path / "model.keras"
    ended = trainings.run(replace(plan, path=str(path)), limit, watched=False)
    assert ended.status == -signal.SIGKILL
    assert (saved_batches(path) or 0) < ended.batches


def test_a_training_that_grows_is_warned_of_once(trainings: Trainings) -> None:
    ended = trainings.run(Plan(grows=2, pause=0.04), GIB // 2)
    assert ended.status == -signal.SIGKILL
    (told,) = ended.told
    assert "of the 512 MiB that the control group may have, and grows by " in told
    assert re.search(r"by (1\.\d|2|2\.\d) MiB with every step: the kernel will kill the program in about", told)
    assert told.endswith("; --stop-before-oom would let it save before")


# ------------------------------------------------------------------------------------- healthy trainings

HEALTHY = {
    "most is taken at the start": Plan(grows=750, when="at the start", pause=0.02, epochs=8),
    "a cache that fits": Plan(grows=450, when="cache", pause=0.06, epochs=4),
    "large shuffle buffers": Plan(
        grows=400, when="shuffle", pause=0.02, epochs=2
    ),  # perhaps one for the validation too
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_trainings_are_left_alone(trainings: Trainings, name: str) -> None:
    ended: Ended = trainings.run(HEALTHY[name], GIB, STOP)
    assert (ended.status, ended.request, ended.told) == (0, None, [])
    assert ended.highest > 0.4
