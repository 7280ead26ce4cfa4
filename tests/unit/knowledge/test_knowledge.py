"""What is known of ops: their spelling, and the releases in which they crash."""

from __future__ import annotations

import pytest

from faultlens.knowledge import all_known_crashes, known_crashes
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


@pytest.mark.parametrize(
    ("op", "version", "id", "effect"),
    [
        ("AvgPoolGrad", "2.9.0", "CVE-2022-35968", "op-check-failed"),
        ("TensorListSplit", "2.11.0", "CVE-2023-25673", "op-division-by-zero"),
        ("FractionalMaxPoolGrad", "2.10.0", "CVE-2022-41897", "op-out-of-bounds"),
    ],
)
def test_advisories_of_later_years(op: str, version: str, id: str, effect: str) -> None:
    assert (id, effect) in {(known.id, known.effect) for known in known_crashes(op, version)}
    assert id not in {known.id for known in known_crashes(op, "2.21.0")}


def test_advisories_of_other_packages_are_left_out() -> None:
    """Thirteen of the second input are Keras's, whose releases have numbers of their own."""
    published = [row for known in all_known_crashes("2.8.0") if (row := known.id).startswith("CVE")]
    assert len(published) > 50
    assert not [id for id in published if id.startswith(("CVE-2024", "CVE-2025", "CVE-2026"))]


@pytest.mark.parametrize(
    ("op", "signal"),
    [("TensorScatterUpdate", "SIGABRT"), ("DenseCountSparseOutput", "SIGFPE"), ("MatrixDiagPartV3", "SIGSEGV")],
)
def test_calls_beside_the_published_ones(op: str, signal: str) -> None:
    assert signal in {known.effect for known in known_crashes(op, "2.21.0")}


def test_a_crash_that_an_older_release_rejects() -> None:
    """A call that 2.12 answers by an exception is not said to crash there."""
    assert known_crashes("EncodePng", "2.12.1") == ()
    assert known_crashes("EncodePng", "2.21.0")
