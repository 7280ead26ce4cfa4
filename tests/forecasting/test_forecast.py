"""`faultlens forecast`: what it says comes true under real limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from asking import MODELS, PROGRAMS, Told, forecast

sys.path.append(str(Path(__file__).parents[1] / "saving"))
from memory_limit import can_be_limited, join, memory_group

BATCH, STEPS = 64, 20
PARTS = ("weights", "gradients", "optimizer", "activations", "input_pipeline", "runtime")
needs_limits = pytest.mark.skipif(not can_be_limited(), reason="needs a control group that may be made")


@pytest.fixture(scope="module")
def told() -> Told:
    return forecast(f"{MODELS}:images", "--batch", str(BATCH), "--limit", "64GiB", "--json", "-")


def trained(limit: int) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, str(PROGRAMS / "train_images.py"), str(BATCH), str(STEPS)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    with memory_group(limit) as group:
        return subprocess.run(command, env=quiet, preexec_fn=lambda: join(group), capture_output=True, timeout=120)


def test_all_phases_are_told_and_their_parts_add_up(told):
    assert told.status == 0, told.errors
    found = told.json
    for peak in (found["training"], found["evaluation"], found["inference"], found["saving"]["peak"]):
        assert peak["low"] <= peak["peak"] <= peak["high"]
        assert sum(peak["parts"][name] for name in PARTS) == pytest.approx(peak["peak"], rel=0.01)
        assert peak["verdict"] == "fits"
    assert found["training"]["how"] == "measured"
    assert found["inference"]["peak"] < found["training"]["peak"]
    assert found["training"]["parts"]["activations"] > BATCH * 64 * 64 * 48 * 4  # what must be kept for the gradients
    assert found["lower_bound"] < found["training"]["peak"]
    assert found["largest_batch"] > BATCH


@needs_limits
def test_what_fits_trains_under_that_limit(told):
    done = trained(told.json["training"]["high"])
    assert (done.returncode, done.stdout) == (0, b"trained\n"), done.stderr[-500:]


@needs_limits
def test_what_does_not_fit_is_killed_under_that_limit(told):
    done = trained(told.json["training"]["low"] - (32 << 20))
    assert done.returncode == -signal.SIGKILL, done.stderr[-500:]


def test_what_does_not_fit_is_told_with_what_to_change():
    words = ("--batch", str(BATCH), "--limit", "450MiB", "--data-spec", "shuffle=20000")
    told = forecast(f"{MODELS}:images", *words)
    assert told.status == 1, told.errors
    assert told.text.startswith("does not fit: training with a batch of 64 needs ")
    assert "a smaller shuffle buffer: shuffle(2,000)" in told.text


def test_a_batch_too_large_for_the_runs_is_extrapolated():
    told = forecast(f"{MODELS}:images", "--batch", "8192", "--memory", "1GiB", "--limit", "2GiB", "--json", "-")
    assert told.status == 1, told.errors
    found = told.json
    assert found["training"]["how"] == "extrapolated"
    assert found["training"]["verdict"] == "does not fit"
    assert max(point["peak"] for point in found["points"]) < 1.3 * (1 << 30)
    assert BATCH < found["largest_batch"] < 8192


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["models.py"], "names no function"),
        (["missing.py:build"], "There is no file missing.py"),
        ([f"{MODELS}:images", "--limit", "much"], "'much' is not a limit"),
        ([f"{MODELS}:images", "--data-spec", "nothing"], "does not describe the data"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(words, sentence):
    told = forecast(*words, "--batch", "8")
    assert told.status == 2
    assert sentence in told.errors and "Traceback" not in told.errors
