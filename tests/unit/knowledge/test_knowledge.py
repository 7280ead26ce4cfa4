"""What is known of ops: their spelling, and the releases in which they crash."""

from __future__ import annotations

import pytest

from faultlens.knowledge import known_crashes
from faultlens.knowledge.op_names import registered


@pytest.mark.parametrize(
    ("name", "op"),
    [("fifo_queue_v2", "FIFOQueueV2"), ("FifoQueueV2", "FIFOQueueV2"), ("lrn_grad", "LRNGrad"), ("my_own_op", None)],
)
def test_spelling(name: str, op: str | None) -> None:
    assert registered(name) == op


def test_an_advisory_holds_for_its_ranges_only() -> None:
    ids = {known.id for known in known_crashes("SparseMatrixSparseCholesky", "2.4.1")}
    assert "CVE-2021-29530" in ids
    assert not {known.id for known in known_crashes("SparseMatrixSparseCholesky", "2.4.2")} & ids
    assert known_crashes("SparseMatrixSparseCholesky", "2.21.0") == ()


def test_an_advisory_names_its_fix_and_source() -> None:
    known = next(
        known for known in known_crashes("SparseMatrixSparseCholesky", "2.4.1") if known.id == "CVE-2021-29530"
    )
    assert known.fixed_in == "2.4.2"
    assert known.effect == "op-null-dereference"
    assert "CC-BY-4.0" in known.source
    assert known.url.endswith("GHSA-xcwj-wfcm-m23c")


@pytest.mark.parametrize(
    ("version", "fixed_in"),
    [
        ("2.12.0", "2.15.1"),
        ("2.13.0", "2.15.1"),
        ("2.15.0", None),
        ("2.21.0", None),
        ("2.30.0", None),
        ("unknown", None),
    ],
)
def test_tried_releases_and_those_between(version: str, fixed_in: str | None) -> None:
    found = known_crashes("UpperBound", version)
    assert [known.fixed_in for known in found] == ([fixed_in] if fixed_in else [])


def test_one_class_serves_both_versions_of_an_op() -> None:
    assert known_crashes("BlockLSTM", "2.21.0")
    assert known_crashes("block_lstm_v2", "2.21.0")


def test_a_crash_that_came_with_a_later_release() -> None:
    assert known_crashes("LRNGrad", "2.12.0") == ()
    assert known_crashes("LRNGrad", "2.21.0")[0].effect == "SIGABRT"
