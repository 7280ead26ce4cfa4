"""Files that were cut, closed or damaged."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.rank import diagnose
from recorded_crashes import causes, first, load


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("memmap_truncated_file", "mapped-file-truncated"),
        ("rewritten", "mapped-file-truncated"),
        ("memmap_closed", "mapping-closed"),
        ("shm_gc", "mapping-closed"),
        ("data_tfrecord_corrupt", "corrupt-input"),
        ("corrupt_checkpoint", "corrupt-saved-model"),
        ("bad_weights_h5_cut", "corrupt-saved-model"),
        ("damaged_tflite", "corrupt-saved-model"),
    ],
)
def test_named_first(name: str, cause: str) -> None:
    assert first(load(name)).cause == cause


def test_a_full_file_system_is_no_truncated_file() -> None:
    assert "mapped-file-truncated" not in causes(load("sigbus_shm_full"))


def test_a_segfault_is_no_truncated_file() -> None:
    verdict = diagnose(load("memmap_closed"))
    assert "mapped-file-truncated" in {item.cause for item in verdict.ruled_out}


def test_a_file_that_is_whole_again_is_named_with_less_certainty() -> None:
    cut, whole = first(load("memmap_truncated_file")), first(load("rewritten"))
    assert cut.confidence > whole.confidence


def test_a_program_without_mappings_has_closed_none() -> None:
    assert "mapping-closed" not in causes(replace(load("shm_gc"), sources={}))


def test_null_is_no_closed_mapping() -> None:
    crash = load("shm_gc")
    assert crash.fault is not None
    crash = replace(crash, fault=replace(crash.fault, address=type(crash.fault.address or 0)(8)))
    assert "mapping-closed" not in causes(crash)


def test_an_ordinary_error_of_an_op_is_not_blamed_on_the_data() -> None:
    assert not {"corrupt-input", "corrupt-saved-model"} & set(causes(load("py_exception")))


def test_a_file_that_may_just_be_missing_is_not_called_damaged_first() -> None:
    assert causes(load("bad_keras_cut")) == ["python-exception", "corrupt-saved-model"]


def test_cython_frames_are_not_the_users_line() -> None:
    location = first(load("bad_weights_h5_cut")).location
    assert location is not None
    assert location.file.endswith("bad_keras.py")
