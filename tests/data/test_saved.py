"""Saved models among the data: damage is told with its kind, and what only has such a name is left alone."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from faultlens.data.formats import format_of
from faultlens.data.formats.saved_model import SavedModel
from faultlens.data.look import Look, Wanted
from faultlens.data.source import opened
from faultlens.records.scan import Checked, Piece


def checked(path: Path) -> Checked:
    with opened(str(path)) as source:
        identity = source.identity()
        known = format_of(str(path), source.read(0, 512))
        assert known is not None
        assert isinstance(known.format, SavedModel)
        piece = Piece(path=str(path), format=known.format.name, start=0, end=identity.size, identity=identity)
        look = Look(piece, Wanted())
        known.format.check(source, piece, look)
    return look.checked()


def kinds(path: Path) -> list[str]:
    return [flaw.kind for flaw in checked(path).flaws]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
        archive.writestr("metadata.json", '{"keras_version": "3.0"}')
        archive.writestr("model.weights.json", "{}" * 100)
    return path


def test_whole(model: Path) -> None:
    found = checked(model)
    assert (found.flaws, found.records) == ((), 1)


def test_cut_off(model: Path) -> None:
    data = model.read_bytes()
    for size in range(1, len(data), 7):
        model.write_bytes(data[:size])
        assert kinds(model) != []
    model.write_bytes(data[:100])
    assert kinds(model) == ["truncated"]


def test_changed(model: Path) -> None:
    data = bytearray(model.read_bytes())
    data[data.index(b"{}{}{}") + 3] ^= 1
    model.write_bytes(data)
    assert kinds(model) == ["checksum"]


def test_lite_model_that_leads_out_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(struct.pack("<I", 1000) + b"TFL3" + bytes(40))
    assert kinds(path) == ["truncated"]


def test_an_index_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "search.index"
    path.write_bytes(b"words and where they are" * 10)
    found = checked(path)
    assert (found.flaws, [each.reason for each in found.unchecked]) == ((), ["they are no checkpoints"])


def test_index_that_is_cut_off_beside_its_data(tmp_path: Path) -> None:
    (tmp_path / "ckpt-1.data-00000-of-00001").write_bytes(bytes(100))
    path = tmp_path / "ckpt-1.index"
    path.write_bytes(bytes(30))
    assert kinds(path) == ["truncated"]
