"""What a training must not exceed, as the user says it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import places
from faultlens.errors import FaultlensError
from faultlens.forecasting.bound import GPUS, bound_of
from faultlens.text.sizes import GIB, MIB

RECORDED = places.RECORDED / "gpu" / "nvidia_smi.xml"


@pytest.fixture
def with_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi answers as it did on a machine with one H200."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat '{RECORDED}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_a_size() -> None:
    bound = bound_of("8GiB")
    assert (bound.limit, bound.what, bound.gpu) == (8 * GIB, "as given", False)


@pytest.mark.parametrize("text", ["auto", " AUTO "])
def test_what_is_left_here(text: str) -> None:
    bound = bound_of(text)
    assert bound.limit > 0 and bound.what.startswith("left ") and not bound.gpu


@pytest.mark.parametrize("text", ["A100-80GB", "a100-80gb", "NVIDIA A100-80GB", " a100-80GB"])
def test_the_name_of_a_gpu(text: str) -> None:
    bound = bound_of(text)
    assert bound.gpu and bound.what == "NVIDIA A100-80GB"
    assert 78 * GIB < bound.limit < GPUS["A100-80GB"] * MIB  # the driver keeps some of it


def test_without_a_size_the_smaller_card_is_meant() -> None:
    assert bound_of("A100").limit < bound_of("A100-80GB").limit
    assert bound_of("V100").limit < bound_of("V100-32GB").limit


@pytest.mark.usefixtures("with_gpu")
@pytest.mark.parametrize("text", ["gpu", "GPU", "gpu:0"])
def test_the_gpu_of_this_machine(text: str) -> None:
    bound = bound_of(text)
    assert (bound.limit, bound.what, bound.gpu) == ((143771 - 616) * MIB, "NVIDIA H200", True)


@pytest.mark.usefixtures("with_gpu")
def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(FaultlensError, match="There is no GPU 1: nvidia-smi shows 1 GPU"):
        bound_of("gpu:1")


def test_no_gpu_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FaultlensError, match="there is no nvidia-smi") as raised:
        bound_of("gpu")
    assert "H200" in str(raised.value.advice)


@pytest.mark.parametrize(
    "text", ["", "much", "8 apples", "-1GiB", "0", "gpu:-1", "gpu:x", "H300", "8GiB; rm", "1" * 40]
)
def test_what_is_no_limit_is_told(text: str) -> None:
    with pytest.raises(FaultlensError, match="is not a limit") as raised:
        bound_of(text)
    assert "8GiB" in str(raised.value.advice)
