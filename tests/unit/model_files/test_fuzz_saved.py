"""Damaged and hostile model files: whatever the bytes, a verdict comes out, and soon."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faultlens.model_files.reader import read
from faultlens.model_files.record import Saved
from faultlens.model_files.regular import UnreadError
from saved_files import hdf5, keras_archive, tflite, write_checkpoint, write_saved_model

MUTATIONS = 300  # of each file


def mutated(raw: bytes, chance: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0:
                del data[place:]
            case 1:
                data[place : place + 8] = chance.choice((b"\xff" * 8, bytes(8), b"\xff" * 4 + bytes(4)))
            case 2:
                data[place:place] = chance.randbytes(chance.randrange(1, 20))
            case 3:
                data[place : place + 4] = chance.randrange(2**32).to_bytes(4, "little")
            case _:
                if place < len(data):
                    data[place] ^= 1 << chance.randrange(8)
    return bytes(data)


@pytest.fixture
def models(tmp_path: Path) -> dict[Path, list[Path]]:
    """What is named, and the files that it is made of."""
    files = {"model.keras": keras_archive(), "model.h5": hdf5(), "model.tflite": tflite()}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    write_saved_model(tmp_path / "saved")
    write_checkpoint(tmp_path / "ck" / "ck")
    saved = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    return {
        **{tmp_path / name: [tmp_path / name] for name in files},
        tmp_path / "saved": saved,
        tmp_path / "ck": list((tmp_path / "ck").iterdir()),
    }


def test_every_mutation_gets_a_verdict(models: dict[Path, list[Path]]) -> None:
    chance = random.Random(11)
    damaged = 0
    for path, files in models.items():
        for file in files:
            whole = file.read_bytes()
            for _ in range(MUTATIONS):
                file.write_bytes(mutated(whole, chance))
                try:
                    saved = read(path, deep=True)
                except UnreadError:
                    continue
                assert saved is None or isinstance(saved, Saved)
                damaged += bool(saved and saved.damages)
            file.write_bytes(whole)
        whole_again = read(path, deep=True)
        assert whole_again is not None and not whole_again.damages
    assert damaged > MUTATIONS * 4
