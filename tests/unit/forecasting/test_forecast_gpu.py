"""The forecast for GPUs, held against what trainings took on one: Keras on JAX and torch, on an H200.

The forecasts were made on a CPU with TensorFlow; what their runs said is recorded, too."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

import places
from faultlens.forecasting import judge
from faultlens.forecasting.account import Account, Options
from faultlens.forecasting.bound import bound_of
from faultlens.forecasting.estimate import Series
from faultlens.records.forecast import Bound, Peak
from faultlens.report.forecast import render
from faultlens.text.sizes import GIB

RECORDED = json.loads((places.RECORDED / "gpu" / "forecast.json").read_text())
MODELS = {model["name"]: model for model in RECORDED["models"]}
# Without its trials of algorithms, XLA needs no more than this; the trials take what is there, and do without.
XLA = "jax-untuned"
EAGER = {"frozen_backbone"}  # with torch, Keras keeps the outputs of all layers until the last is done


def account(name: str, batch: int, bound: Bound) -> Account:
    model = MODELS[name]
    described = {**model["model"], "name": name, "optimizer_name": "adam", "accumulates": 1, "parameters": 1}
    return Account(
        subject=name,
        options=Options(batch=batch, python="python", bound=bound),
        series=[Series(size, tuple(peaks)) for size, peaks in model["series"]],
        base=model["base"],
        largest={"model": described, "example": model["example"]},
        saves={},
        inference=None,
        points=[],
        too_much=None,
    )


def training(name: str, batch: int, limit: int = 1 << 50) -> Peak:
    return judge.forecast(account(name, batch, Bound(limit=limit, what="a GPU", gpu=True))).training


def cases(backend: str) -> list[tuple[str, int]]:
    return [
        (name, int(batch))
        for name, model in MODELS.items()
        if backend in model["measured"]
        for batch in model["measured"][backend]["training"]
    ]


def taken(name: str, batch: int, backend: str) -> tuple[int, int]:
    """By tensors, and by the process."""
    told: dict[str, Any] = MODELS[name]["measured"][backend]
    tensors: int = told["training"][str(batch)]
    return tensors, tensors + told["context"]


@pytest.mark.parametrize(("backend", "least"), [(XLA, 90), ("torch", 90)])
def test_what_it_took_is_within_the_range(backend: str, least: int) -> None:
    found = cases(backend)
    assert len(found) >= least
    outside = {
        name
        for name, batch in found
        if not training(name, batch).low <= taken(name, batch, backend)[1] <= training(name, batch).high
    }
    assert outside <= (EAGER if backend == "torch" else set())


def test_the_range_holds_for_tensors_alone() -> None:
    """With XLA, on models that it was not made with: the room for CUDA's context hides no error."""
    for name, batch in cases(XLA):
        if not MODELS[name]["made_with"]:
            peak, (tensors, _) = training(name, batch), taken(name, batch, XLA)
            assert peak.low - judge.GPU_LEAST_CONTEXT <= tensors <= peak.high - judge.GPU_MOST_CONTEXT, (name, batch)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_verdicts_over_pools_of_limited_size(name: str) -> None:
    """Trainings ran in pools as small as the upper bound, and as the lower one was; trials of algorithms were on."""
    for run in MODELS[name]["limited"]:
        verdict = training(name, run["batch"], run["pool"] + judge.GPU_MOST_CONTEXT).verdict
        assert verdict != "fits" or run["ok"]
        if run["ok"]:
            assert training(name, run["batch"], run["pool"] + judge.GPU_LEAST_CONTEXT).verdict != "does not fit"


def test_parts_add_up() -> None:
    peak = training("vgg", 24)
    assert sum(getattr(peak.parts, part) for part in peak.parts.__struct_fields__) == peak.peak
    assert peak.low <= peak.peak <= peak.high


def test_the_largest_batch_fits_and_a_larger_one_may_not() -> None:
    bound = bound_of("T4")
    largest = judge.forecast(account("vgg", 24, bound)).largest_batch
    assert largest is not None
    assert training("vgg", largest, bound.limit).verdict == "fits"
    assert training("vgg", largest + 1, bound.limit).verdict == "too close to tell"
    assert (
        judge.forecast(account("large_weights", 32, Bound(limit=2 * GIB, what="a GPU", gpu=True))).largest_batch is None
    )


def test_it_is_said_how_little_is_known() -> None:
    console = Console(file=io.StringIO(), width=200)
    render(judge.forecast(account("vgg", 24, bound_of("T4"))), console)
    assert "measured on the CPU" in console.file.getvalue()  # type: ignore[attr-defined]
